// Package migrations embeds Foyer's numbered SQL, one folder for each database.
// A file is never changed once it has been released: a correction is the next
// number, with the same number and purpose in both folders.
package migrations

import (
	"embed"
	"io/fs"
)

// The two embedded folders.
var (
	//go:embed postgres/*.sql
	postgres embed.FS
	//go:embed sqlite/*.sql
	sqlite embed.FS
)

// Postgres returns the migrations for PostgreSQL 14 and later.
func Postgres() fs.FS { return folder(postgres, "postgres") }

// SQLite returns the migrations for SQLite.
func SQLite() fs.FS { return folder(sqlite, "sqlite") }

// folder cannot fail: the name is one that the compiler embedded above.
func folder(files embed.FS, name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err)
	}
	return sub
}
