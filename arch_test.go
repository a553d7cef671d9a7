// Package foyer_test judges the program as a whole: who may import whom, what a
// file may look like, whether the documents tell the truth, and, driven from
// outside, whether the whole way works.
package foyer_test

import (
	"bufio"
	"go/ast"
	"go/parser"
	syntax "go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "foyer/"

// layer is one row of the import table: what a package may import of ours, and
// the reason that an edge beyond it is refused with.
type layer struct {
	pkg string
	may []string
	why string
}

// layers is the whole table. A package without a row fails, so that a new one is
// placed on purpose.
var layers = []layer{
	{"domain", nil, "the nouns and rules must be usable, and testable, without anything else of ours"},
	{"migrations", nil, "it is SQL text and its embedding; running it is the store's work"},
	{"web", nil, "it is pages and their embedding; serving them is the API's work"},
	{"lua", []string{"domain"}, "an atomic step in Redis knows nothing of SQL, streams or HTTP, so that it can be proved alone"},
	{"store", []string{"domain", "migrations"}, "SQL is the last word on what is sold; it must not depend on what Redis thinks"},
	{"events", []string{"domain"}, "the transport carries commands and facts and decides nothing; deciding is in lua and store"},
	{"workers", []string{"domain", "events", "lua", "store"}, "a worker is run without any HTTP beside it"},
	{"pass", nil, "a shop with a checkout of its own imports it alone, and must not get Foyer with it"},
	{"pass/echopass", []string{"pass"}, "it is apart from pass so that a shop on net/http need not have Echo"},
	{"api", []string{"domain", "events", "internal/operate", "lua", "pass", "store", "web"}, "an API process is run without any worker beside it"},
	{"internal/config", []string{"domain"}, "settings are read before anything is built from them"},
	{"internal/testenv", []string{"domain"}, "every package's tests use it, so it may use none of them"},
	{"client", []string{"domain"}, "a shop written in Go imports it alone; it knows the program by its HTTP contract"},
	{"pass", nil, "a shop imports it to check passes, and wants nothing else of ours with it"},
	{"pass/echopass", []string{"pass"}, "it is pass for shops on Echo"},
	{"internal/crowd", []string{"client", "domain"}, "the simulated crowd comes in through the front door, as people do: HTTP and sockets"},
	{"internal/simulate", []string{"domain"}, "it plays the rules on virtual time, without any server; a test of lua holds it to the real ones"},
	{"internal/recovery", []string{"domain", "events", "lua", "store"}, "it brings Redis back to what SQL and the streams say, from beside all three"},
	{"internal/operate", []string{"domain", "events", "lua"}, "it does what operators ask, for the API and the command line alike"},
	{"internal/verify", []string{"domain", "events", "lua", "store"}, "it holds Redis, streams and SQL against one another, from beside all three"},
	{"internal/app", []string{"api", "client", "domain", "events", "internal/config", "internal/crowd", "internal/operate", "internal/recovery", "internal/verify", "lua", "migrations",
		"store", "web", "workers"},
		"this is where everything is wired; what it does not need it must not see"},
	{"cmd/foyer", []string{"client", "domain", "internal/app", "internal/config", "internal/crowd", "internal/simulate"},
		"a command reads its settings and runs the application; wiring it by hand would be a second way that tests do not take"},
	{"deploy", nil, "it is manifests and their check"},
	{"bench", []string{"api", "client", "domain", "events", "internal/app", "internal/config", "lua", "store", "workers"}, "a measurement uses what is shipped"},
	{"", nil, "the root holds only tests of the whole"},
}

// edgeReasons says more about the edges that one is most tempted to add.
var edgeReasons = map[string]string{
	"api -> workers":   "they meet over streams and notifications only, so that each can be scaled, stopped and killed alone",
	"workers -> api":   "they meet over streams and notifications only, so that each can be scaled, stopped and killed alone",
	"events -> lua":    "a transport that changes state would do it once for each delivery",
	"events -> store":  "a transport that changes state would do it once for each delivery",
	"lua -> store":     "who loads Redis from SQL is the wiring, by the loader given to lua.New; otherwise no step could be tested without SQL",
	"store -> lua":     "a seat is sold by the constraint in SQL whatever a hold in Redis says",
	"web -> domain":    "the pages know the program by its HTTP contract alone",
	"cmd/foyer -> api": "internal/app is the only wiring, shared with the end-to-end tests",
}

// testsMay lists what tests may import beyond their package's row.
var testsMay = map[string][]string{
	"":             {"api", "client", "domain", "events", "internal/app", "internal/config", "internal/testenv", "lua", "store", "web"},
	"workers":      {"internal/recovery"}, // tests lose Redis and must be able to restore it
	"lua":          {"internal/simulate"}, // the simulator's rules are held to the real ones
	"deploy":       {"internal/config", "internal/app"},
	"internal/app": {"internal/testenv"},
	// what was rebuilt is held against every promise
	"internal/recovery": {"internal/verify"},
	// actions are made where they are written down, on a real database
	"internal/operate": {"store"},
}

// A library is one outside module, where it may be used, and why only there.
type library struct {
	prefix string
	in     []string // packages, or single files, that may import it
	tests  bool     // tests of any package may import it as well
	why    string
}

var everywhere = []string{"*"}

var libraries = []library{
	{"github.com/labstack/echo", []string{"api", "pass/echopass"}, false, "HTTP routing is the API's own affair; echopass is for shops that have Echo"},
	{"github.com/olahol/melody", []string{"api"}, false, "its traps are fenced in one wrapper"},
	{"github.com/gorilla/websocket", []string{"api", "client", "bench"}, true, "servers use it through melody; only clients dial"},
	{"github.com/golang-jwt/jwt", []string{"api", "pass", "internal/app", "internal/crowd", "cmd/foyer"}, true, "passes are signed and checked in pass; tokens are judged in one place and minted by dev mode and the token command"},
	{"github.com/MicahParks/keyfunc", []string{"api"}, false, "keys of tokens are judged where tokens are"},
	{"github.com/ThreeDotsLabs/", []string{"events"}, false, "the message library can be replaced by changing one package"},
	{"github.com/jackc/pgx", []string{"store", "internal/testenv", "bench", ""}, false,
		"SQL is spoken in one package; the end-to-end tests look behind it, and measurements speak it plainly to compare"},
	{"modernc.org/sqlite", []string{"store"}, false, "SQL is spoken in one package"},
	{"github.com/pressly/goose", []string{"store"}, false, "migrations are run by the store"},
	{"github.com/alicebob/miniredis", []string{"internal/app"}, true, "embedded Redis is for trying out; production code must not know it"},
	{"github.com/redis/go-redis", []string{"events", "lua", "internal/app", "internal/testenv", "bench", "api/errors.go"}, true,
		"state in Redis is changed by lua's steps and events' streams, nowhere else; api/errors.go only tells its errors apart"},
	{"github.com/alecthomas/kong", []string{"cmd/foyer", "internal/config"}, false, "flags are read at the door"},
	{"github.com/prometheus/client_golang", []string{"api", "events", "workers", "internal/app", "cmd/foyer"}, true, "counting happens where the work is"},
	{"go.opentelemetry.io/otel", []string{"api", "events", "workers", "internal/app"}, true, "a trace follows a command through these"},
	{"github.com/chromedp/", nil, true, "a browser is for tests"},
	{"github.com/stretchr/testify", nil, true, "assertions are for tests"},
	{"github.com/google/go-cmp", nil, true, "comparisons are for tests"},
	{"github.com/anishathalye/porcupine", nil, true, "the linearizability checker is for tests"},
	{"github.com/santhosh-tekuri/jsonschema", nil, true, "the contract is checked by tests"},
	{"pgregory.net/rapid", nil, true, "property tests are tests"},
	{"go.uber.org/goleak", []string{"internal/testenv"}, true, "leaks are looked for by tests"},
	{"gopkg.in/yaml.v3", []string{"cmd/foyer", "internal/app"}, true, "the program is configured by environment and flags"},
	{"golang.org/x/", everywhere, true, ""},
}

// source is one parsed Go file.
type source struct {
	file  string // slash path from the root
	pkg   string // its folder; "" at the root
	test  bool
	ast   *ast.File
	set   *syntax.FileSet
	lines int
}

// skipped are folders that hold no source of this module. internal/deps may exist
// in a working tree while libraries are being chosen; bench/peers is a module of its
// own, which imports what the product must not.
var skipped = []string{".git", "node_modules", "bin", "testdata", "internal/deps", "bench/peers"}

// walk calls see for every file of the project, by slash path from the root.
func walk(t *testing.T, see func(file string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if slices.Contains(skipped, name) || slices.Contains(skipped, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		see(name)
		return nil
	}))
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, func(file string) {
		if path.Ext(file) != ".go" {
			return
		}
		set := syntax.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.FromSlash(file), nil, parser.ParseComments)
		require.NoError(t, err)
		pkg := path.Dir(file)
		if pkg == "." {
			pkg = ""
		}
		all = append(all, source{file: file, pkg: pkg, test: strings.HasSuffix(file, "_test.go"), ast: parsed, set: set,
			lines: set.File(parsed.FileStart).LineCount()})
	})
	require.NotEmpty(t, all)
	return all
}

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.ast.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

func rowOf(pkg string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return l.pkg == pkg })
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

// TestOurPackagesImportOnlyWhatTheTableAllows keeps the way of the data one way:
// each stop can be read, tested and replaced without the others.
func TestOurPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	t.Parallel()
	for _, src := range sources(t) {
		row, known := rowOf(src.pkg)
		if !known {
			t.Errorf("%s: package %q has no row in the import table of arch_test.go; say there what it may import, and why", src.file, src.pkg)
			continue
		}
		for _, imported := range src.imports() {
			target, ours := strings.CutPrefix(imported, module)
			if !ours || target == src.pkg || slices.Contains(row.may, target) {
				continue
			}
			if src.test && (target == "internal/testenv" || slices.Contains(testsMay[src.pkg], target)) {
				continue
			}
			why := row.why
			if more, ok := edgeReasons[src.pkg+" -> "+target]; ok {
				why = more
			}
			t.Errorf("%s imports %s: %s must not import %s, since %s", src.file, imported, src.pkg, target, why)
		}
	}
}

// TestLibrariesStayWhereTheyBelong keeps a library replaceable by changing one package.
func TestLibrariesStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	for _, src := range sources(t) {
		for _, imported := range src.imports() {
			if !strings.Contains(imported, ".") || strings.HasPrefix(imported, module) {
				continue // the standard library, or ours
			}
			i := slices.IndexFunc(libraries, func(l library) bool { return strings.HasPrefix(imported, l.prefix) })
			if i < 0 {
				t.Errorf("%s imports %s, which has no row in arch_test.go; say there where it belongs, and why", src.file, imported)
				continue
			}
			lib := libraries[i]
			allowed := slices.Contains(lib.in, src.pkg) || slices.Contains(lib.in, src.file) || slices.Equal(lib.in, everywhere) || src.test && lib.tests ||
				src.pkg == "internal/testenv" && lib.tests
			if !allowed {
				t.Errorf("%s imports %s, which belongs in %v: %s", src.file, imported, lib.in, lib.why)
			}
		}
	}
}

// TestEveryRequirementHasARow makes adding a dependency a decision with a reason.
func TestEveryRequirementHasARow(t *testing.T) {
	t.Parallel()
	file, err := os.Open("go.mod")
	require.NoError(t, err)
	defer file.Close()
	requirement := regexp.MustCompile(`^\s+(\S+) v\S+$`) // a direct one: an indirect one ends in a comment
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		match := requirement.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		if !slices.ContainsFunc(libraries, func(l library) bool { return strings.HasPrefix(match[1]+"/", strings.TrimSuffix(l.prefix, "/")) }) {
			t.Errorf("go.mod requires %s, which has no row in arch_test.go", match[1])
		}
	}
	require.NoError(t, lines.Err())
}

// TestEveryPackageSaysWhatItIsFor: a package comment gives purpose and promise.
func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, src := range sources(t) {
		has := src.ast.Doc != nil && len(strings.TrimSpace(src.ast.Doc.Text())) > 40
		documented[src.pkg] = documented[src.pkg] || has
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %q has no comment that says what it is for and what it promises", pkg)
		}
	}
}

// Limits of size: what is longer has more than one thing to say.
const (
	maxFileLines     = 500
	maxFunctionLines = 80
)

// TestFilesAndFunctionsStayReadable bounds their length, except of generated ones.
func TestFilesAndFunctionsStayReadable(t *testing.T) {
	t.Parallel()
	for _, src := range sources(t) {
		if ast.IsGenerated(src.ast) {
			continue
		}
		if src.lines > maxFileLines+1 {
			t.Errorf("%s has %d lines; split it by concept, at most %d a file", src.file, src.lines, maxFileLines)
		}
		for _, declaration := range src.ast.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := src.set.Position(function.End()).Line - src.set.Position(function.Pos()).Line + 1
			if lines > maxFunctionLines {
				t.Errorf("%s: %s has %d lines; give its steps names, at most %d a function", src.file, function.Name.Name, lines, maxFunctionLines)
			}
		}
	}
}

// TestNothingIsPutOff: what is not done is an issue, not a note in a file.
func TestNothingIsPutOff(t *testing.T) {
	t.Parallel()
	note := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)
	kinds := []string{".go", ".lua", ".sql", ".js", ".mjs", ".css", ".html", ".md", ".yaml", ".yml", ".sh", ""}
	walk(t, func(file string) {
		if !slices.Contains(kinds, path.Ext(file)) {
			return
		}
		text, err := os.ReadFile(filepath.FromSlash(file))
		require.NoError(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			if found := note.FindString(line); found != "" {
				t.Errorf("%s:%d says %s; do it, or file an issue", file, i+1, found)
			}
		}
	})
}
