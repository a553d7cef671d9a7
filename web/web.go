// Package web holds the pages of Foyer: the list of shows, the waiting room with
// seat map and chat, and the operator's page. They are plain HTML, CSS and ES
// modules, embedded in the binary: nothing is built, and nothing is fetched from
// anywhere but the server that delivers them. They keep to a content security
// policy without inline scripts or styles.
package web

import (
	"embed"
	"io/fs"
)

//go:embed *.html favicon.svg css js
var files embed.FS

// Files returns the pages with index.html at the root. They are read only and
// the same for the life of the process.
func Files() fs.FS { return files }
