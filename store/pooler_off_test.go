//go:build !pooler

package store_test

import "testing"

// addPooler adds the databases that only a build for them is tested on.
func addPooler(map[string]func(*testing.T) string) {}
