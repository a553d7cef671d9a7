package lua

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"foyer/domain"
)

//go:embed *.lua
var files embed.FS

const preludePrefix = "prelude_"

// script is one step as its file declares it. Its header says which preludes stand
// in front of it, and which keys it reads and writes; the keys are passed in that
// order and a script knows them by name only: key.waiting.
type script struct {
	name    string
	reads   []string
	writes  []string
	returns []string // every code it may answer
	source  string   // what is sent: keys by name, preludes, the file
	run     *redis.Script
}

func reads(s *script) []string  { return s.reads }
func writes(s *script) []string { return s.writes }

func (s *script) keys() []string { return append(slices.Clone(s.reads), s.writes...) }

// loadScripts reads the embedded files. A faulty one is a mistake of this package
// that no caller could mend, so it panics; every test would show it.
func loadScripts() map[string]*script {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("lua: read embedded scripts: %v", err))
	}
	scripts := map[string]*script{}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), path.Ext(entry.Name()))
		if !strings.HasPrefix(name, preludePrefix) {
			scripts[name] = parseScript(name, readFile(name))
		}
	}
	return scripts
}

func readFile(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("lua: read embedded script: %v", err))
	}
	return string(text)
}

func parseScript(name, text string) *script {
	header := parseHeader(text)
	s := &script{name: name, reads: strings.Fields(header["READS"]), writes: strings.Fields(header["WRITES"])}
	s.returns = resultCodes(header["RETURNS"])
	var source strings.Builder
	source.WriteString("local key = {")
	for i, id := range s.keys() {
		fmt.Fprintf(&source, "%s=KEYS[%d], ", id, i+1)
	}
	source.WriteString("}\n")
	for _, prelude := range strings.Fields(header["USES"]) {
		source.WriteString(readFile(preludePrefix + prelude))
	}
	source.WriteString(text)
	s.source = source.String()
	s.run = redis.NewScript(s.source)
	return s
}

// parseHeader reads the comment at a script's top: its parts begin with a word in
// capitals, and lines that follow belong to the same part.
func parseHeader(text string) map[string]string {
	parts, part := map[string]string{}, ""
	for line := range strings.Lines(text) {
		body, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "--")
		if !ok {
			break
		}
		first, rest, _ := strings.Cut(strings.TrimSpace(body), " ")
		if slices.Contains([]string{"USES", "READS", "WRITES", "ARGV", "RETURNS"}, first) {
			part, body = first, rest
		}
		parts[part] += body + "\n"
	}
	return parts
}

// resultCodes finds the codes in a header's RETURNS: words in capitals before the
// first lower-case word of each line that is indented no deeper than the first.
func resultCodes(returns string) []string {
	var codes []string
	for line := range strings.Lines(returns) {
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,:\n", r) }) {
			if word != strings.ToUpper(word) && word != "or" && word != "with" {
				break
			}
			if len(word) > 1 && word == strings.ToUpper(word) && !slices.Contains(codes, word) {
				codes = append(codes, word)
			}
		}
	}
	return codes
}

func stepsThat(scripts map[string]*script, id string, touches func(*script) []string) string {
	var names []string
	for name, s := range scripts {
		if slices.Contains(touches(s), id) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "no step"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// call is one run of a script under one hash tag.
type call struct {
	script string
	tag    string
	args   []any
}

// step runs a script on a show. A show that is not in Redis is loaded once, where a
// loader is set, and the step tried again.
func (s *Steps) step(ctx context.Context, name string, show domain.ShowID, args ...any) (reply, error) {
	c := call{script: name, tag: string(show), args: args}
	r, err := s.once(ctx, c)
	if !errors.Is(err, domain.ErrNotLoaded) || s.load == nil {
		return r, err
	}
	if err := s.loadShow(ctx, show); err != nil {
		return nil, err
	}
	return s.once(ctx, c)
}

// loadTimeout bounds the loading of a show.
const loadTimeout = 15 * time.Second

// loadShow has a show loaded; callers who come meanwhile wait for the same load, so it
// must not end because the first of them hung up.
func (s *Steps) loadShow(ctx context.Context, show domain.ShowID) error {
	_, err, _ := s.loads.Do(string(show), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return nil, s.load(ctx, show)
	})
	if err != nil {
		return fmt.Errorf("load show %s into redis: %w", show, err)
	}
	return nil
}

// once runs a script by its hash, and by its text where the server does not know it:
// after a restart, a failover or SCRIPT FLUSH.
func (s *Steps) once(ctx context.Context, c call) (reply, error) {
	sc := s.scripts[c.script]
	return parseReply(c.script, sc.run.Run(ctx, s.rdb, keyNames(sc.keys(), c.tag), s.argv(c)...))
}

// all runs scripts in one round trip, each with its own outcome, and those that the
// server did not know in a second. The error is of the connection.
func (s *Steps) all(ctx context.Context, calls []call) ([]reply, []error) {
	replies, errs := make([]reply, len(calls)), make([]error, len(calls))
	round := func(pick []int, run func(p redis.Pipeliner, sc *script, keys []string, args []any) *redis.Cmd) (unknown []int) {
		pipe, cmds := s.rdb.Pipeline(), make([]*redis.Cmd, len(pick))
		for i, at := range pick {
			sc := s.scripts[calls[at].script]
			cmds[i] = run(pipe, sc, keyNames(sc.keys(), calls[at].tag), s.argv(calls[at]))
		}
		_, _ = pipe.Exec(ctx) // each command carries its own error
		for i, at := range pick {
			if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
				unknown = append(unknown, at)
			}
			replies[at], errs[at] = parseReply(calls[at].script, cmds[i])
		}
		return unknown
	}
	every := make([]int, len(calls))
	for i := range every {
		every[i] = i
	}
	unknown := round(every, func(p redis.Pipeliner, sc *script, keys []string, args []any) *redis.Cmd {
		return sc.run.EvalSha(ctx, p, keys, args...)
	})
	if len(unknown) > 0 {
		round(unknown, func(p redis.Pipeliner, sc *script, keys []string, args []any) *redis.Cmd {
			return sc.run.Eval(ctx, p, keys, args...)
		})
	}
	for i, err := range errs {
		if errors.Is(err, domain.ErrNotLoaded) && s.load != nil {
			replies[i], errs[i] = s.step(ctx, calls[i].script, domain.ShowID(calls[i].tag), calls[i].args...)
		}
	}
	return replies, errs
}

// argv puts the clock offset in front, which is 0 but in tests.
func (s *Steps) argv(c call) []any {
	return append([]any{s.offset.Load()}, c.args...)
}
