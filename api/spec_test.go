package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// spec is openapi.yaml, to hold answers against.
type spec struct {
	document map[string]any
	mu       sync.Mutex // guards compiler
	compiler *jsonschema.Compiler
	paths    map[string]*regexp.Regexp // by template
}

// readSpec reads it once: every answer of every test is held against it.
var readSpec = sync.OnceValues(func() (any, error) {
	text, err := specs.ReadFile(openapiSpec)
	if err != nil {
		return nil, err
	}
	var raw any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
})

func loadSpec(t *testing.T) *spec {
	t.Helper()
	document, err := readSpec()
	require.NoError(t, err)
	s := &spec{document: document.(map[string]any), compiler: jsonschema.NewCompiler(), paths: map[string]*regexp.Regexp{}}
	s.compiler.AssertFormat()
	require.NoError(t, s.compiler.AddResource("https://foyer.test/openapi.json", document))
	variable := regexp.MustCompile(`\\\{\w+\\\}`)
	for template := range s.document["paths"].(map[string]any) {
		s.paths[template] = regexp.MustCompile("^" + variable.ReplaceAllString(regexp.QuoteMeta(template), "[^/]+") + "$")
	}
	return s
}

// template finds the path of the description that a request's path is of. A
// literal path wins over one with variables.
func (s *spec) template(path string) (string, bool) {
	if _, ok := s.paths[path]; ok {
		return path, true
	}
	for template, form := range s.paths {
		if form.MatchString(path) {
			return template, true
		}
	}
	return "", false
}

// check holds an answer against the description of its operation.
func (s *spec) check(t *testing.T, method, path string, a answer) {
	t.Helper()
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	if a.status >= http.StatusBadRequest {
		require.Equal(t, mediaProblem, kind, "%s %s: %s", method, path, a.body)
		if method != http.MethodHead {
			s.validate(t, "/components/schemas/Problem", a.body)
		}
	}
	template, ok := s.template(path)
	if method == http.MethodOptions {
		return // a browser's question, answered for every path alike
	}
	if method == http.MethodHead {
		_, known := s.at("paths", template, "get").(map[string]any)
		require.True(t, known || a.status >= http.StatusBadRequest, "%s %s is answered but not described", method, path)
		require.Empty(t, a.body)
		return // what GET answers is described
	}
	operation, known := s.at("paths", template, strings.ToLower(method)).(map[string]any)
	if !ok || !known {
		require.GreaterOrEqual(t, a.status, http.StatusBadRequest, "%s %s is answered but not described", method, path)
		return
	}
	code := fmt.Sprint(a.status)
	response, known := operation["responses"].(map[string]any)[code].(map[string]any)
	require.True(t, known || a.status == http.StatusInternalServerError, "%s %s answered %d, which is not described: %s", method, template, a.status, a.body)
	content, described := response["content"].(map[string]any)
	if a.status >= http.StatusBadRequest {
		return
	}
	require.Equal(t, described, len(a.body) > 0, "%s %s: a body exactly where one is described", method, template)
	if !described {
		return
	}
	require.Contains(t, content, kind, "%s %s", method, template)
	if kind == "application/json" {
		escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace
		s.validate(t, "/paths/"+escaped(template)+"/"+strings.ToLower(method)+"/responses/"+code+"/content/"+escaped(kind)+"/schema", a.body)
	}
}

func (s *spec) at(names ...string) any {
	var value any = s.document
	for _, name := range names {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

func (s *spec) validate(t *testing.T, pointer string, body []byte) {
	t.Helper()
	s.mu.Lock()
	schema, err := s.compiler.Compile("https://foyer.test/openapi.json#" + pointer)
	s.mu.Unlock()
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(value), "%s does not fit %s", body, pointer)
}

// TestEveryRouteIsDescribedAndEveryDescriptionIsARoute: a client that is made from
// the description must find everything, and nothing may be served in secret.
func TestEveryRouteIsDescribedAndEveryDescriptionIsARoute(t *testing.T) {
	t.Parallel()
	e := newEdge(t, func(c *Config, _ *Deps) { c.DevMode = true })
	variable := regexp.MustCompile(`:(\w+)`)
	var routes, described []string
	for _, route := range e.server.echo.Routes() {
		if route.Method == http.MethodHead { // of a GET, with the same answer
			continue
		}
		routes = append(routes, route.Method+" "+variable.ReplaceAllString(route.Path, "{$1}"))
	}
	methods := []string{"get", "post", "put", "patch", "delete"}
	for template, item := range e.spec.document["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if slices.Contains(methods, method) {
				described = append(described, strings.ToUpper(method)+" "+template)
			}
		}
	}
	require.ElementsMatch(t, described, routes)
}

// TestEverySchemaOfTheDescriptionIsValid compiles them all, also those that no
// test happens to need.
func TestEverySchemaOfTheDescriptionIsValid(t *testing.T) {
	t.Parallel()
	s := loadSpec(t)
	for name := range s.at("components", "schemas").(map[string]any) {
		_, err := s.compiler.Compile("https://foyer.test/openapi.json#/components/schemas/" + name)
		require.NoError(t, err)
	}
	ids := map[string]string{}
	for template, item := range s.document["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			if id, ok := operation.(map[string]any); ok && id["operationId"] != nil {
				require.NotContains(t, ids, id["operationId"], "operation ids are unique")
				ids[id["operationId"].(string)] = method + " " + template
			}
		}
	}
}

func TestTheDescriptionIsServed(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	text, err := specs.ReadFile(openapiSpec)
	require.NoError(t, err)
	require.Equal(t, text, e.call("", "GET", "/openapi.yaml", nil).is(http.StatusOK).body)
	e.call("", "GET", "/asyncapi.yaml", nil).is(http.StatusOK)
}

// TestEveryCodeIsDescribed: a client switches over the codes, so the description
// must list every one that the package can answer with, and none besides.
func TestEveryCodeIsDescribed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^\s*code[A-Z]\w*\s*= "([A-Z_]+)"`)
	var codes []any
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			codes = append(codes, match[1])
		}
	}
	require.ElementsMatch(t, codes, loadSpec(t).at("components", "schemas", "Code", "enum"))
}
