//go:build !race

package foyer_test

// raceFlag builds the program as the tests are built, so that one build serves both.
func raceFlag() []string { return nil }
