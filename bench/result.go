package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Result is a comparison that has run.
type Result struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"`
	About   string    `json:"about"`
	At      time.Time `json:"at"`
	Machine Machine   `json:"machine"`
	Load    []float64 `json:"load"` // processes that wanted to run, before and after each repeat
	Metrics []Metric  `json:"metrics"`
	Rows    []Row     `json:"rows"`
	Goals   []Goal    `json:"goals"`
}

// Row is all that was measured of one variant, a sample for each repeat.
type Row struct {
	Variant string   `json:"variant"`
	Samples []Sample `json:"samples"`
}

func (r Row) values(key string) []float64 {
	var values []float64
	for _, s := range r.Samples {
		if v, ok := s[key]; ok {
			values = append(values, v)
		}
	}
	return values
}

func (r Result) row(variant string) Row {
	for _, row := range r.Rows {
		if row.Variant == variant {
			return row
		}
	}
	return Row{}
}

// judge says what a goal's number has come to and whether it is reached.
func (r Result) judge(g Goal) (values []float64, reached bool) {
	values = r.row(g.Variant).values(g.Metric)
	if g.Against != "" {
		others := r.row(g.Against).values(g.Metric)
		for i := range values {
			values[i] /= others[i]
		}
	}
	if len(values) == 0 {
		return nil, false
	}
	got := median(values)
	return values, got >= g.AtLeast && (g.AtMost == 0 || got <= g.AtMost)
}

const resultsFolder = "results"

func (r Result) save(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, resultsFolder), 0o755); err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, resultsFolder, r.Name+".json"), append(text, '\n'), 0o644)
}

const preamble = `# Measurements

Written by ` + "`make bench`" + `. Each table is one run: all its variants took turns on the same
servers, and a number is the median of the repeats, with the lowest and the highest in
brackets. A ratio is the median of the ratios of each repeat, so it holds on a machine
that others use too; rates and latencies are lower bounds there. The load tells how many
processes wanted to run, on how many cores. All variants run with GOGC=400, which a worker
process sets for itself; API processes of their own have the usual 100.

`

// Render writes RESULTS.md from all results that are kept.
func Render(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, resultsFolder, "*.json"))
	if err != nil {
		return err
	}
	var page strings.Builder
	page.WriteString(preamble)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var r Result
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("read result %s: %w", filepath.Base(file), err)
		}
		r.render(&page)
	}
	return os.WriteFile(filepath.Join(dir, "RESULTS.md"), []byte(page.String()), 0o644)
}

func (r Result) render(page *strings.Builder) {
	fmt.Fprintf(page, "## %s\n\n%s\n\n", r.Title, r.About)
	page.WriteString("| |")
	for _, m := range r.Metrics {
		fmt.Fprintf(page, " %s |", m.Name)
	}
	page.WriteString("\n|---|" + strings.Repeat("---|", len(r.Metrics)) + "\n")
	for _, row := range r.Rows {
		fmt.Fprintf(page, "| %s |", row.Variant)
		for _, m := range r.Metrics {
			fmt.Fprintf(page, " %s |", spread(row.values(m.Key)))
		}
		page.WriteString("\n")
	}
	page.WriteString("\n")
	for _, g := range r.Goals {
		values, reached := r.judge(g)
		verdict := "not reached"
		if reached {
			verdict = "reached"
		}
		fmt.Fprintf(page, "* %s: %s, **%s**\n", g.Text, spread(values), verdict)
	}
	low, high := extremes(r.Load)
	fmt.Fprintf(page, "\n%s, %s; load %.1f to %.1f; %d repeats.\n\n", r.At.Format("2006-01-02 15:04 MST"), r.Machine, low, high, len(r.Rows[0].Samples))
}

func extremes(values []float64) (low, high float64) {
	low, high = values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

func spread(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	low, high := extremes(values)
	if len(values) == 1 || low == high {
		return number(median(values))
	}
	return fmt.Sprintf("%s [%s..%s]", number(median(values)), number(low), number(high))
}

// number shows three digits that matter and groups thousands.
func number(v float64) string {
	switch {
	case v != 0 && v < 10 && v > -10:
		return fmt.Sprintf("%.3g", v)
	case v < 1000 && v > -1000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	digits := fmt.Sprintf("%.0f", v)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
