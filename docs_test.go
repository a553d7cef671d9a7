package foyer_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"foyer/internal/config"
)

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(file))
	require.NoError(t, err)
	return string(text)
}

// markdown lists the project's documents.
func markdown(t *testing.T) []string {
	t.Helper()
	var files []string
	walk(t, func(file string) {
		if path.Ext(file) == ".md" {
			files = append(files, file)
		}
	})
	return files
}

// testNames are all Go tests there are, as folder.Name; those at the root as foyer.Name.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, src := range sources(t) {
		folder := src.pkg
		if folder == "" {
			folder = "foyer"
		}
		for _, declaration := range src.ast.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && src.test && function.Recv == nil {
				names[folder+"."+function.Name.Name] = true
			}
		}
	}
	return names
}

// TestGuaranteesNameTestsThatExist: a promise says what keeps it, which test would see it
// broken, and where it ends; the test is there.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	known := testNames(t)
	test := regexp.MustCompile("`([a-z/]+\\.(?:Test|Fuzz)\\w+)`")
	promises := strings.Split(readText(t, "docs/guarantees.md"), "\n### ")[1:]
	require.NotEmpty(t, promises)
	for _, promise := range promises {
		title, body, _ := strings.Cut(promise, "\n")
		for _, part := range []string{"Mechanism:", "Test:", "Limit:"} {
			if strings.Count(body, "\n- "+part) != 1 {
				t.Errorf("guarantee %q must have one line %q", title, part)
			}
		}
		named := test.FindAllStringSubmatch(body, -1)
		if len(named) == 0 {
			t.Errorf("guarantee %q names no test", title)
		}
		for _, match := range named {
			if !known[match[1]] {
				t.Errorf("guarantee %q names %s, which does not exist", title, match[1])
			}
		}
	}
}

// TestDocumentsNameTargetsThatExist: each `make X` can be typed as it stands.
func TestDocumentsNameTargetsThatExist(t *testing.T) {
	t.Parallel()
	makefile := readText(t, "Makefile")
	named := regexp.MustCompile("(?m)(?:`|^    )make ([a-z-]+)")
	for _, file := range markdown(t) {
		for _, match := range named.FindAllStringSubmatch(readText(t, file), -1) {
			if !strings.Contains(makefile, "\n"+match[1]+":") {
				t.Errorf("%s says make %s, which the Makefile does not have", file, match[1])
			}
		}
	}
	for _, target := range []string{"make run", "make test", "make ci"} {
		require.Contains(t, readText(t, "README.md"), target)
	}
}

// TestDocumentsLinkToWhatExists checks every link within the project.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	for _, file := range markdown(t) {
		for _, match := range link.FindAllStringSubmatch(readText(t, file), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.FromSlash(path.Join(path.Dir(file), match[1]))); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, match[1])
			}
		}
	}
}

// TestEveryDecisionIsWhole: a page without the way to notice that it was wrong is an opinion.
func TestEveryDecisionIsWhole(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/adr/0*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	index := readText(t, "docs/adr/README.md")
	for i, page := range slices.Sorted(slices.Values(pages)) {
		page = filepath.ToSlash(page)
		text := readText(t, page)
		number := path.Base(page)[:4]
		require.Equal(t, fmt.Sprintf("%04d", i+1), number, "decisions are numbered without gaps")
		require.True(t, strings.HasPrefix(text, "# "+number+" "), page)
		for _, heading := range []string{"Context", "Decision", "Consequences", "How we would notice that it was wrong"} {
			require.Contains(t, text, "\n## "+heading+"\n", page)
		}
		require.Contains(t, index, "("+path.Base(page)+")")
	}
}

// TestReadmeListsEverySetting, with its default: the table is the first thing that
// somebody who sets Foyer up looks at.
func TestReadmeListsEverySetting(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile("(?m)^\\| `(FOYER_\\w+)` \\| (\\S+) \\| .+ \\|$")
	listed := map[string]string{}
	for _, match := range row.FindAllStringSubmatch(readText(t, "README.md"), -1) {
		listed[match[1]] = strings.Replace(match[2], "empty", "", 1)
	}
	settings := map[string]string{}
	for field := range reflect.TypeFor[config.Flags]().Fields() {
		settings[field.Tag.Get("env")] = field.Tag.Get("default")
	}
	require.Equal(t, settings, listed)
}

// TestReadmeShowsTheFoldersThatExist: the layout is complete but for what serves tests only.
func TestReadmeShowsTheFoldersThatExist(t *testing.T) {
	t.Parallel()
	readme := readText(t, "README.md")
	folder := regexp.MustCompile(`(?m)^    ([a-z/]+)/ {2,}`)
	shown := map[string]bool{}
	for _, match := range folder.FindAllStringSubmatch(readme, -1) {
		shown[match[1]] = true
		require.DirExists(t, match[1])
	}
	for _, src := range sources(t) {
		top, _, _ := strings.Cut(src.pkg, "/")
		if top != "" && top != "internal" && !shown[top] && !shown[src.pkg] {
			t.Errorf("the layout in README.md does not show %s", top)
			shown[top] = true // once is enough
		}
	}
}
