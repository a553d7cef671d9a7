package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"foyer/domain"
	"foyer/events"
	"foyer/lua"
	"foyer/store"
)

// Redis tells what Redis has of a show; it must not restore one that is missing.
// *lua.Steps without a loader does.
type Redis interface {
	Audit(ctx context.Context, show domain.ShowID) (lua.Audit, error)
}

// SQL tells what SQL has of a show. *store.DB does.
type SQL interface {
	Ledger(ctx context.Context, show domain.ShowID) (store.Ledger, error)
}

// Streams tell which commands are not done. *events.Backlog does.
type Streams interface {
	Unfinished(ctx context.Context, stream string) ([]events.Unfinished, error)
}

// Letters are the commands that were given up on. *events.DeadLetters has them.
type Letters interface {
	List(ctx context.Context, stream string, limit int) ([]events.DeadLetter, error)
}

// How often a Verifier looks before it calls something wrong.
const (
	defaultLooks = 3
	defaultPause = 1500 * time.Millisecond
)

// Verifier verifies shows. The zero Looks and Pause are the defaults: 3 looks, 1.5 s
// between them.
type Verifier struct {
	Redis   Redis
	SQL     SQL
	Streams Streams
	Letters Letters
	Looks   int           // a finding must be there each time
	Pause   time.Duration // between looks
}

// Finding is one thing that is wrong.
type Finding struct {
	Check   string `json:"check"`   // which promise is broken
	Subject string `json:"subject"` // the seat, booking, hold, person or entry
	Detail  string `json:"detail"`
}

func (f Finding) String() string { return f.Check + ": " + f.Subject + ": " + f.Detail }

// same reports whether two looks have found the same thing: what is told of it may
// have changed, and be wrong both times.
func (f Finding) same(g Finding) bool { return f.Check == g.Check && f.Subject == g.Subject }

// Report is what verifying a show came to.
type Report struct {
	ShowID   domain.ShowID `json:"showId"`
	Findings []Finding     `json:"findings"` // what is wrong
	Notes    []string      `json:"notes"`    // what an operator may want to know, and is not wrong
	Numbers  Numbers       `json:"numbers"`
}

// Clean reports whether nothing is wrong.
func (r Report) Clean() bool { return len(r.Findings) == 0 }

// Numbers say what was looked at.
type Numbers struct {
	Loaded      bool  `json:"loaded"` // the show is in Redis
	Waiting     int64 `json:"waiting"`
	Active      int64 `json:"active"`
	Holds       int   `json:"holds"`
	Sold        int   `json:"sold"`
	Bookings    int   `json:"bookings"`
	Pending     int   `json:"pending"`    // bookings
	Cancelling  int   `json:"cancelling"` // bookings that were asked to be cancelled and are not
	Unfinished  int   `json:"unfinished"` // commands
	DeadLetters int   `json:"deadLetters"`
}

// Verify checks a show. Its error says that it could not look; what is wrong is in
// the report. It fails with domain.ErrShowNotFound.
func (v *Verifier) Verify(ctx context.Context, show domain.ShowID) (Report, error) {
	looks, wait := cmp.Or(v.Looks, defaultLooks), cmp.Or(v.Pause, defaultPause)
	var report Report
	for look := 1; ; look++ {
		facts, err := v.Look(ctx, show)
		if err != nil {
			return Report{}, err
		}
		found := facts.Findings()
		if look > 1 {
			found = slices.DeleteFunc(found, func(f Finding) bool { return !slices.ContainsFunc(report.Findings, f.same) })
		}
		report = Report{ShowID: show, Findings: found, Notes: facts.notes(), Numbers: facts.numbers()}
		if report.Clean() || look >= looks {
			return report, nil
		}
		if err := pause(ctx, wait); err != nil {
			return Report{}, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Facts are what one look has seen.
type Facts struct {
	Loaded     bool      // the show is in Redis
	Redis      lua.Audit // zero when it is not
	SQL        store.Ledger
	Unfinished []events.Unfinished // those that name the show, or none
	Letters    []events.DeadLetter // likewise
}

// Look reads Redis first and SQL after: what Redis has of a decided booking, SQL has
// had before.
func (v *Verifier) Look(ctx context.Context, show domain.ShowID) (Facts, error) {
	f := Facts{Loaded: true}
	var err error
	f.Redis, err = v.Redis.Audit(ctx, show)
	if errors.Is(err, domain.ErrNotLoaded) {
		f.Loaded, err = false, nil
	}
	if err != nil {
		return Facts{}, fmt.Errorf("look at show %s in redis: %w", show, err)
	}
	if f.SQL, err = v.SQL.Ledger(ctx, show); err != nil {
		return Facts{}, fmt.Errorf("look at show %s in sql: %w", show, err)
	}
	for _, stream := range events.Streams() {
		unfinished, err := v.Streams.Unfinished(ctx, stream)
		if err != nil {
			return Facts{}, fmt.Errorf("look at commands: %w", err)
		}
		for _, u := range unfinished {
			if f.concerns(u.ShowID, u.BookingID) {
				f.Unfinished = append(f.Unfinished, u)
			}
		}
	}
	letters, err := v.Letters.List(ctx, "", events.MaxDeadLetters)
	if err != nil {
		return Facts{}, fmt.Errorf("look at dead letters: %w", err)
	}
	for _, letter := range letters {
		if f.concerns(letter.About()) {
			f.Letters = append(f.Letters, letter)
		}
	}
	return f, nil
}

// concerns reports whether a command is about the show, or about none: what nobody
// can read may be about any.
func (f *Facts) concerns(show domain.ShowID, booking domain.BookingID) bool {
	_, ours := f.SQL.Bookings[booking]
	return ours || show == f.SQL.Show.ID || show == ""
}

func (f *Facts) numbers() Numbers {
	n := Numbers{
		Loaded: f.Loaded, Waiting: f.Redis.Waiting, Active: f.Redis.Inside - f.Redis.Over, Sold: len(f.SQL.Sold),
		Bookings: len(f.SQL.Bookings), Unfinished: len(f.Unfinished), DeadLetters: len(f.Letters),
	}
	for _, hold := range f.Redis.Holds {
		if hold.State != lua.HoldLapsed {
			n.Holds++
		}
	}
	for _, b := range f.SQL.Bookings {
		if b.Status == domain.BookingPending {
			n.Pending++
		}
		if b.Cancelling() {
			n.Cancelling++
		}
	}
	return n
}

func (f *Facts) notes() []string {
	notes := []string{}
	if !f.Loaded {
		notes = append(notes, "the show is not in Redis; whoever asks for it next restores it")
	}
	cancelling, first := 0, store.LedgerBooking{}
	for _, b := range f.SQL.Bookings {
		if b.Cancelling() {
			cancelling++
			if b.CancelAsked > first.CancelAsked {
				first = b
			}
		}
	}
	if cancelling > 0 {
		notes = append(notes, fmt.Sprintf("%d bookings were asked to be cancelled and are not yet; the first, %s, %s ago",
			cancelling, first.BookingID, first.CancelAsked.Round(time.Second)))
	}
	for _, letter := range f.Letters {
		notes = append(notes, fmt.Sprintf("dead letter %s on %s: %s %s: %s", letter.ID, letter.Stream, letter.Type, letter.CommandID, letter.Reason))
	}
	return notes
}

// Findings are everything that looks wrong in one look, in a fixed order.
func (f *Facts) Findings() []Finding {
	c := &checker{Facts: f}
	c.sales()
	c.commands()
	if f.Loaded {
		c.line()
		c.counters()
		c.seats()
		c.holds()
		c.agreement()
		c.people()
	}
	slices.SortFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Check, b.Check), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Detail, b.Detail))
	})
	return c.found
}

// checker gathers what one look finds.
type checker struct {
	*Facts
	found []Finding
}

// wrong notes a finding.
func wrong[ID ~string](c *checker, check string, subject ID, format string, args ...any) {
	c.found = append(c.found, Finding{Check: check, Subject: string(subject), Detail: fmt.Sprintf(format, args...)})
}
