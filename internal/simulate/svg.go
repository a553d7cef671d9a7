package simulate

import (
	"bufio"
	"fmt"
	"io"
	"math"
)

// The drawing, in its own units: panels one below the other that share the time.
const (
	svgWidth    = 860
	svgLeft     = 76
	svgRight    = 20
	svgTop      = 44
	panelHeight = 120
	panelGap    = 38
	svgBottom   = 46
	yTicks      = 4
	xTicks      = 9
)

// point is a time in s since the opening and a value.
type point struct{ x, y float64 }

// panel is one plot: a line, perhaps with a band around it or a limit above it.
type panel struct {
	title     string
	line      []point
	low, high []point // edges of the band
	limit     float64 // 0: none
	color     string
	value     func(float64) string // writes a tick
}

// drawing writes shapes, and scales what it is given.
type drawing struct {
	*bufio.Writer
	from, to float64 // time shown
}

// WriteSVG draws the course of the sale: people waiting, people inside below their limit,
// seats sold, and the wait of who got in as the band between one in ten and nine in ten.
func (r *Result) WriteSVG(out io.Writer) error {
	panels := r.panels()
	height := svgTop + len(panels)*(panelHeight+panelGap) - panelGap + svgBottom
	d := &drawing{Writer: bufio.NewWriter(out)}
	if n := len(r.Series); n > 0 {
		d.from, d.to = r.Series[0].At, max(r.Series[n-1].At, r.Series[0].At+1)
	}
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="12" fill="#333">`+"\n", svgWidth, height, svgWidth, height)
	fmt.Fprintf(d, "<title>Simulated sale: %s people, %s seats</title>\n", whole(r.People), whole(r.Plan.Seats))
	fmt.Fprintf(d, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", svgWidth, height)
	for i, p := range panels {
		d.draw(p, float64(svgTop+i*(panelHeight+panelGap)))
	}
	bottom := svgTop + len(panels)*(panelHeight+panelGap) - panelGap
	d.timeAxis(float64(bottom))
	fmt.Fprintln(d, "</svg>")
	return d.Flush()
}

func (r *Result) panels() []panel {
	waiting := panel{title: "People waiting", color: "#4063d8", value: count}
	inside := panel{title: "People inside", color: "#389826", value: count, limit: float64(r.Plan.MaxActive)}
	sold := panel{title: "Seats sold", color: "#9558b2", value: count, limit: float64(r.Plan.Seats)}
	for _, s := range r.Series {
		waiting.line = append(waiting.line, point{s.At, float64(s.Waiting)})
		inside.line = append(inside.line, point{s.At, float64(s.Inside)})
		sold.line = append(sold.line, point{s.At, float64(s.Sold)})
	}
	wait := panel{title: "Wait of who got in: median, and from one in ten to nine in ten", color: "#cb3c33", value: hours}
	for _, b := range r.Waits {
		middle := (b.From + b.To) / 2
		wait.line = append(wait.line, point{middle, b.P50})
		wait.low, wait.high = append(wait.low, point{middle, b.P10}), append(wait.high, point{middle, b.P90})
	}
	return []panel{waiting, inside, sold, wait}
}

func count(v float64) string { return whole(int(v)) }

func (d *drawing) x(at float64) float64 {
	return svgLeft + (at-d.from)/max(d.to-d.from, 1)*(svgWidth-svgLeft-svgRight)
}

// draw puts one panel with its upper edge at top.
func (d *drawing) draw(p panel, top float64) {
	highest := p.limit
	for _, points := range [][]point{p.line, p.high} {
		for _, q := range points {
			highest = max(highest, q.y)
		}
	}
	step := niceStep(highest, yTicks)
	if p.limit == 0 && len(p.high) > 0 {
		step = niceTime(highest, yTicks)
	}
	ceiling := step * max(1, math.Ceil(highest/step))
	y := func(v float64) float64 { return top + panelHeight*(1-v/ceiling) }
	fmt.Fprintf(d, `<text x="%d" y="%.1f" font-weight="600">%s</text>`+"\n", svgLeft, top-10, p.title)
	for v := 0.0; v <= ceiling+step/2; v += step {
		fmt.Fprintf(d, `<path d="M%d %.1fH%d" stroke="#e3e3e3"/>`, svgLeft, y(v), svgWidth-svgRight)
		fmt.Fprintf(d, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", svgLeft-8, y(v)+4, p.value(v))
	}
	if d.from < 0 {
		fmt.Fprintf(d, `<path d="M%.1f %.1fV%.1f" stroke="#999"/>`+"\n", d.x(0), top, top+panelHeight)
	}
	if p.limit > 0 {
		fmt.Fprintf(d, `<path d="M%d %.1fH%d" stroke="#999" stroke-dasharray="5 4"/>`+"\n", svgLeft, y(p.limit), svgWidth-svgRight)
	}
	if len(p.low) > 0 {
		fmt.Fprintf(d, `<path fill="%s" fill-opacity="0.2" d="`, p.color)
		d.trace(p.low, y)
		for i := len(p.high) - 1; i >= 0; i-- {
			fmt.Fprintf(d, "L%.1f %.1f", d.x(p.high[i].x), y(p.high[i].y))
		}
		fmt.Fprint(d, `Z"/>`+"\n")
	}
	fmt.Fprintf(d, `<path fill="none" stroke="%s" stroke-width="1.8" stroke-linejoin="round" d="`, p.color)
	d.trace(p.line, y)
	fmt.Fprint(d, `"/>`+"\n")
}

func (d *drawing) trace(points []point, y func(float64) float64) {
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(d, "%s%.1f %.1f", command, d.x(p.x), y(p.y))
	}
}

// timeAxis writes the times that all panels share.
func (d *drawing) timeAxis(top float64) {
	step := niceTime(d.to-d.from, xTicks)
	for at := math.Ceil(d.from/step) * step; at <= d.to; at += step {
		fmt.Fprintf(d, `<path d="M%.1f %.1fv5" stroke="#999"/>`, d.x(at), top)
		fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", d.x(at), top+19, hours(at))
	}
	fmt.Fprintf(d, `<text x="%d" y="%.1f" text-anchor="middle">time since the opening (h:mm:ss)</text>`+"\n", (svgLeft+svgWidth-svgRight)/2, top+37)
}

// hours writes a time as a tick of an axis: -0:30:00.
func hours(s float64) string {
	sign, n := "", int(math.Round(s))
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d:%02d:%02d", sign, n/3600, n/60%60, n%60)
}

// niceStep is 1, 2 or 5 times a power of ten, so that about n of it reach highest. It is
// whole, since what is counted is.
func niceStep(highest float64, n int) float64 {
	rough := max(highest, 1) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if factor*power >= rough {
			return max(1, factor*power)
		}
	}
	return max(1, 10*power)
}

// niceTime is the same for seconds.
func niceTime(highest float64, n int) float64 {
	for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600} {
		if step*float64(n) >= highest {
			return step
		}
	}
	return 43_200
}
