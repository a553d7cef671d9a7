package api

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// schemaBase is where the two descriptions are for the schema compiler, which wants
// absolute addresses; the relative references between them are as they are served.
const schemaBase = "http://foyer.test/"

// socketSchemas compiles the payload of every message once, by message name.
var socketSchemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	var async map[string]any
	for _, name := range []string{openapiSpec, asyncapiSpec} {
		text, err := specs.ReadFile(name)
		if err != nil {
			return nil, err
		}
		document, err := yamlDocument(text)
		if err != nil {
			return nil, err
		}
		if err := compiler.AddResource(schemaBase+name, document); err != nil {
			return nil, err
		}
		async = document.(map[string]any)
	}
	schemas := map[string]*jsonschema.Schema{}
	for message, described := range async["components"].(map[string]any)["messages"].(map[string]any) {
		ref := described.(map[string]any)["payload"].(map[string]any)["$ref"].(string)
		schema, err := compiler.Compile(schemaBase + asyncapiSpec + ref)
		if err != nil {
			return nil, err
		}
		schemas[message] = schema
	}
	return schemas, nil
})

// yamlDocument reads YAML into what JSON would have given.
func yamlDocument(text []byte) (any, error) {
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
}

// messageOf names the AsyncAPI message of an event.
func messageOf(event string) string {
	words := strings.Split(strings.ToLower(event), "_")
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}

// checkFrame holds every frame that a test's server sends to its description.
func checkFrame(t testing.TB) func([]byte) {
	t.Helper()
	schemas, err := socketSchemas()
	require.NoError(t, err)
	return func(frame []byte) {
		var of struct{ Event string }
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(frame))
		if err != nil || json.Unmarshal(frame, &of) != nil {
			t.Errorf("frame is not JSON: %s", frame)
			return
		}
		schema := schemas[messageOf(of.Event)]
		if schema == nil {
			t.Errorf("event %q is not described", of.Event)
			return
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("frame %s is not as described: %v", frame, err)
		}
	}
}

// TestAsyncAPIDescribesClientFrames holds the parser and the description together:
// what one takes, the other does.
func TestAsyncAPIDescribesClientFrames(t *testing.T) {
	t.Parallel()
	schemas, err := socketSchemas()
	require.NoError(t, err)
	for frame, good := range map[string]bool{
		`{"type":"join","showId":"a-1"}`:                                             true,
		`{"type":"join","showId":"a-1","ref":"7"}`:                                   true,
		`{"type":"claim","showId":"a-1"}`:                                            true,
		`{"type":"leave","showId":"a-1"}`:                                            true,
		`{"type":"subscribe","topic":"/topic/seats/show/a","since":3,"epoch":1}`:     true,
		`{"type":"unsubscribe","topic":"/topic/chat/x"}`:                             true,
		`{"type":"read","roomId":"x","upTo":9}`:                                      true,
		`{"type":"join","showId":"a-1","personId":"somebody else"}`:                  false,
		`{"type":"join","showId":7}`:                                                 false,
		`{"type":"subscribe","topic":"/topic/stats/show/a","ref":"` + longRef + `"}`: false,
	} {
		_, parseErr := parseClientFrame([]byte(frame))
		require.Equal(t, good, parseErr == nil, "parse %s: %v", frame, parseErr)
		var of struct{ Type string }
		require.NoError(t, json.Unmarshal([]byte(frame), &of))
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(frame))
		require.NoError(t, err)
		require.Equal(t, good, schemas[of.Type].Validate(value) == nil, "describe %s", frame)
	}
}

var longRef = strings.Repeat("x", maxRefSize+1)

// TestAsyncAPIIsWhole looks that every message is an operation's, that nothing is
// described twice or left over, and that every topic has a name of its own.
func TestAsyncAPIIsWhole(t *testing.T) {
	t.Parallel()
	text, err := specs.ReadFile(asyncapiSpec)
	require.NoError(t, err)
	var document struct {
		AsyncAPI string `yaml:"asyncapi"`
		Channels map[string]struct {
			Address  string
			Messages map[string]struct {
				Ref string `yaml:"$ref"`
			}
		}
		Operations map[string]struct {
			Messages []struct {
				Ref string `yaml:"$ref"`
			}
		}
		Components struct{ Messages, Schemas map[string]yaml.Node }
	}
	require.NoError(t, yaml.Unmarshal(text, &document))
	require.Equal(t, "3.0.0", document.AsyncAPI)
	require.Equal(t, "/ws", document.Channels["socket"].Address)
	var used []string
	for _, operation := range document.Operations {
		for _, message := range operation.Messages {
			used = append(used, path.Base(message.Ref))
		}
	}
	var known []string
	for name := range document.Components.Messages {
		known = append(known, name)
		require.Equal(t, "#/components/messages/"+name, document.Channels["socket"].Messages[name].Ref)
	}
	slices.Sort(used)
	slices.Sort(known)
	require.Equal(t, known, used)
	for name := range document.Components.Schemas {
		require.Contains(t, string(text), "#/components/schemas/"+name+"'", "schema %s is used by nothing", name)
	}
}
