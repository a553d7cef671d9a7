package simulate

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"foyer/domain"
)

// WriteTable writes a result for people to read.
func (r *Result) WriteTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", values...) }
	row("people", "%s came, %s got a place, %s came too late", whole(r.People), whole(r.Joined), whole(r.Refused))
	row("let in", "%s, of whom %s were no-shows (%s) and %s bought", whole(r.LetIn), whole(r.NoShows), share(r.NoShows, r.LetIn), whole(r.Buyers))
	row("never let in", "%s", whole(r.NotIn))
	row("per minute", "%.0f let in on average, %s at most", r.MeanLetInPerMinute, whole(r.PeakLetInPerMinute))
	switch {
	case r.Plan.Seats == 0:
		row("seats", "%s taken; the show has no plan of seats", whole(r.SeatsSold))
	case r.SoldOutAfter != nil:
		row("sold out", "%s after the opening, all %s seats", clock(*r.SoldOutAfter), whole(r.SeatsSold))
	default:
		row("sold out", "no: %s of %s seats are left", whole(r.Plan.Seats-r.SeatsSold), whole(r.Plan.Seats))
	}
	row("ended", "%s after the opening", clock(r.EndedAfter))
	fmt.Fprintf(w, "\nwait\thalf\t9 of 10\t99 of 100\n")
	for _, line := range []struct {
		who string
		p   Percentiles
	}{{"of who got in", r.WaitOfLetIn}, {"of all", r.WaitOfAll}} {
		row(line.who, "%s\t%s\t%s", clock(line.p.P50), clock(line.p.P90), clock(line.p.P99))
	}
	for _, lane := range r.Lanes {
		row(cmp.Or(lane.Name, domain.OrdinaryName), "%s\t%s\t%s\t%s of %s got in, weight %d",
			clock(lane.WaitOfLetIn.P50), clock(lane.WaitOfLetIn.P90), clock(lane.WaitOfLetIn.P99), whole(lane.LetIn), whole(lane.Joined), lane.Weight)
	}
	fmt.Fprintf(w, "\nat most\t\n")
	row("waiting", "%s", whole(r.PeakWaiting))
	row("inside", "%s of %s", whole(r.PeakInside), whole(r.Plan.MaxActive))
	row("sockets", "%s", whole(r.PeakSockets))
	row("Redis", "about %s commands/s, %.1f %% of a core, %s MB", whole(int(r.Redis.PeakStepsPerSecond)), 100*r.Redis.PeakBusy, whole((r.Redis.PeakBytes+999_999)/1_000_000))
	row("Redis on average", "about %s commands/s, %.1f %% of a core", whole(int(r.Redis.MeanStepsPerSecond)), 100*r.Redis.MeanBusy)
	return w.Flush()
}

// whole writes a number with its thousands apart.
func whole(n int) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && digits[i-1] != '-' && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

func share(n, of int) string {
	if of == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// clock writes seconds as 1h02m03s, with tenths below a minute.
func clock(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d > -time.Minute && d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
