package bench

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// defaultRepeats is how often every variant runs; FOYER_BENCH_REPEATS changes it.
const defaultRepeats = 5

// Sample is what one run of a variant measured, by the key of a Metric.
type Sample map[string]float64

// Metric is a column of a comparison's table.
type Metric struct {
	Key  string // in samples
	Name string // with its unit
}

// Variant is one side of a comparison.
type Variant struct {
	Name string
	Run  func(b *testing.B) Sample
}

// Goal is a promise about a measurement. Against, unless empty, is the variant
// that Variant is divided by. One of AtLeast and AtMost is set.
type Goal struct {
	Text    string
	Metric  string
	Variant string
	Against string
	AtLeast float64
	AtMost  float64
}

// Comparison runs variants beside one another.
type Comparison struct {
	Name     string // of its file
	Title    string
	About    string // what one run does, in a sentence or two
	Servers  []string
	Metrics  []Metric
	Variants []Variant
	Goals    []Goal
	Repeats  int // 0 for the default
}

// Run runs all variants in turn, as often as there are repeats, beginning with
// another one each time. It keeps the numbers and renders RESULTS.md. Where
// FOYER_BENCH_ONLY names a variant, only that one runs and nothing is kept.
func (c Comparison) Run(b *testing.B) {
	b.Helper()
	if b.N > 1 {
		b.Fatal("a comparison repeats by itself: run it with -benchtime 1x")
	}
	only := os.Getenv("FOYER_BENCH_ONLY")
	if only != "" {
		c.Variants = slices.DeleteFunc(c.Variants, func(v Variant) bool { return v.Name != only })
	}
	repeats := c.repeats(b)
	result := Result{
		Name: c.Name, Title: c.Title, About: c.About, Metrics: c.Metrics, Goals: c.Goals,
		Machine: thisMachine(c.Servers), At: time.Now().UTC().Truncate(time.Second), Load: []float64{load()},
	}
	for _, v := range c.Variants {
		result.Rows = append(result.Rows, Row{Variant: v.Name})
	}
	for repeat := range repeats {
		for i := range c.Variants {
			at := (i + repeat) % len(c.Variants)
			result.Rows[at].Samples = append(result.Rows[at].Samples, c.Variants[at].Run(b))
		}
		result.Load = append(result.Load, load())
	}
	for _, row := range result.Rows {
		for _, m := range c.Metrics {
			if values := row.values(m.Key); len(values) > 0 {
				b.ReportMetric(median(values), strings.ReplaceAll(row.Variant+":"+m.Name, " ", "_"))
			}
		}
	}
	if only != "" {
		return // half a comparison is for looking into, with a profiler
	}
	dir, err := folder()
	if err != nil {
		b.Fatal(err)
	}
	if err := result.save(dir); err != nil {
		b.Fatal(err)
	}
	if err := Render(dir); err != nil {
		b.Fatal(err)
	}
}

func (c Comparison) repeats(b *testing.B) int {
	text := os.Getenv("FOYER_BENCH_REPEATS")
	if text == "" {
		return cmp.Or(c.Repeats, defaultRepeats)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("FOYER_BENCH_REPEATS must be a number from 1, not %q", text)
	}
	return n
}

// folder is bench itself, from wherever in it a benchmark runs.
func folder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if filepath.Base(at) == "bench" {
			return at, nil
		}
	}
	return "", fmt.Errorf("%s is not in a folder named bench", dir)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Quantile is the value that a share of the values, which it sorts, is not above.
func Quantile(values []time.Duration, share float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(share*float64(len(values))), len(values)-1)]
}

// Millis is a duration as a Sample has it.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
