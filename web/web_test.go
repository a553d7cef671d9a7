package web_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"foyer/web"
)

// read returns every embedded file by name.
func read(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(web.Files(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(web.Files(), name)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPagesAreThere(t *testing.T) {
	t.Parallel()
	files := read(t)
	for _, name := range []string{"index.html", "show.html", "operator.html", "css/foyer.css", "favicon.svg"} {
		if files[name] == "" {
			t.Errorf("%s is missing or empty", name)
		}
	}
}

// What stands in the folders beside this test and is not embedded would be
// missing only in the built program.
func TestEverythingIsEmbedded(t *testing.T) {
	t.Parallel()
	files := read(t)
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name == "test" {
				return fs.SkipDir
			}
			return nil
		}
		if _, embedded := files[name]; !embedded && path.Ext(name) != ".go" {
			t.Errorf("%s is not embedded", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var inline = map[string]*regexp.Regexp{
	"a script without src": regexp.MustCompile(`(?i)<script(\s+type="module")?\s*>`),
	"a style element":      regexp.MustCompile(`(?i)<style`),
	"a style attribute":    regexp.MustCompile(`(?i)\sstyle\s*=`),
	"an event attribute":   regexp.MustCompile(`(?i)<[^>]*\son[a-z]+\s*=`),
	"a javascript address": regexp.MustCompile(`(?i)javascript:`),
}

// The pages are served under a policy that refuses all of these: a page with one
// would work from a file and fail in production.
func TestPagesHaveNothingInline(t *testing.T) {
	t.Parallel()
	for name, content := range read(t) {
		if path.Ext(name) != ".html" {
			continue
		}
		for what, form := range inline {
			if found := form.FindString(content); found != "" {
				t.Errorf("%s has %s: %s", name, what, found)
			}
		}
	}
}

// Text from people reaches the page as text only: none of the ways in which a
// script turns text into markup or code is used.
func TestScriptsNeverMakeMarkupOfText(t *testing.T) {
	t.Parallel()
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\('style'`)
	for name, content := range read(t) {
		if found := forbidden.FindString(content); path.Ext(name) == ".js" && found != "" {
			t.Errorf("%s uses %s", name, found)
		}
	}
}

var external = regexp.MustCompile(`(?i)(https?:)?//[a-z0-9-]+(\.[a-z0-9-]+)+`)

func TestNothingComesFromElsewhere(t *testing.T) {
	t.Parallel()
	for name, content := range read(t) {
		for _, found := range external.FindAllString(content, -1) {
			if found != "http://www.w3.org" { // the name of SVG, which nobody fetches
				t.Errorf("%s refers to %s", name, found)
			}
		}
	}
}

// references finds what a file needs, by the extension of the file.
var references = map[string]*regexp.Regexp{
	".html": regexp.MustCompile(`(?:src|href)="([^"]+)"`),
	".js":   regexp.MustCompile(`(?m)^(?:import|export) .*?from '([^']+)'`),
	".css":  regexp.MustCompile(`url\(["']?([^)"']+)`),
}

func TestReferencesResolve(t *testing.T) {
	t.Parallel()
	files := read(t)
	for name, content := range files {
		form := references[path.Ext(name)]
		if form == nil {
			continue
		}
		for _, found := range form.FindAllStringSubmatch(content, -1) {
			target, _, _ := strings.Cut(found[1], "?")
			if strings.HasPrefix(target, "#") {
				continue
			}
			if _, there := files[path.Join(path.Dir(name), target)]; !there {
				t.Errorf("%s refers to %s, which is not there", name, found[1])
			}
		}
	}
}

var (
	idInPage   = regexp.MustCompile(`\sid="([^"]+)"`)
	idInScript = regexp.MustCompile(`byId\('([^']+)'\)`)
	idRefs     = regexp.MustCompile(`\s(?:for|aria-labelledby|aria-controls)="([^"]+)"`)
)

// A script that asks for an element that its page does not have stops the page.
func TestScriptsAndPagesAgreeOnIds(t *testing.T) {
	t.Parallel()
	files := read(t)
	pages := map[string][]string{"show.html": nil, "operator.html": nil, "index.html": nil}
	for page := range pages {
		ids := map[string]bool{}
		for _, found := range idInPage.FindAllStringSubmatch(files[page], -1) {
			if ids[found[1]] {
				t.Errorf("%s has the id %s twice", page, found[1])
			}
			ids[found[1]] = true
		}
		for _, found := range idRefs.FindAllStringSubmatch(files[page], -1) {
			if !ids[found[1]] {
				t.Errorf("%s refers to the id %s, which it does not have", page, found[1])
			}
		}
		own := files["js/"+strings.TrimSuffix(page, ".html")+".js"]
		if page == "show.html" {
			for _, view := range []string{"place", "seats", "basket", "bookings", "chat", "show-head", "sign-in"} {
				own += files["js/views/"+view+".js"]
			}
		}
		for _, found := range idInScript.FindAllStringSubmatch(own, -1) {
			if !ids[found[1]] {
				t.Errorf("%s lacks the id %s that its scripts use", page, found[1])
			}
		}
	}
}

// The hooks that tests of the whole program and other people's tools rely on.
func TestStableHooks(t *testing.T) {
	t.Parallel()
	page := read(t)["show.html"]
	for _, id := range strings.Fields(`join status rank eta claim claim-countdown session-countdown best-count best hold
		hold-countdown release extend book booking-status message chat chat-toggle chat-badge chat-messages chat-text chat-send
		sign-in-name sign-in leave`) {
		if !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("show.html has no #%s", id)
		}
	}
}
