package lua

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"foyer/domain"
)

// Whatever anybody does in whatever order, the promises hold after every single step.
func TestPromisesHoldInAnyOrderOfSteps(t *testing.T) {
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		checks, failed := 0, false
		rapid.Check(t, func(r *rapid.T) {
			if checks++; checks > fewer(t, 100) && !failed {
				return // the slow server has a share; a failure is still pursued
			}
			defer func() { failed = failed || r.Failed() }()
			m := newMachine(t, rdb)
			steps := map[string]func(*rapid.T){
				"join":      m.join,
				"visit":     m.visit,
				"claim":     m.claim,
				"leave":     m.leave,
				"admit":     m.admit,
				"touch":     m.touch,
				"time":      m.time,
				"configure": m.configure,
				"hold":      m.hold,
				"hold more": m.hold,
				"change":    m.changeHold,
				"begin":     m.begin,
				"buy":       m.buy,
				"settle":    m.settle,
				"cancel":    m.cancel,
				"sweep":     m.sweep,
				"lose":      m.lose,
				"":          m.check,
			}
			rounds := max(1, fewer(t, 2)) // long enough for people to come back
			for range rounds {
				r.Repeat(steps)
			}
		})
	})
}

// machine is a show with few people, seats and slots, so that they meet often, and
// what a bystander knows: the order of arrival, when people were let in, and SQL.
type machine struct {
	w        *world
	line     []domain.RequestID // in order of arrival
	admitted []time.Time
	holds    int
	begun    map[domain.HoldID]domain.Booking
	sold     map[domain.SeatID]domain.Booking // what SQL has
	booked   []domain.Booking                 // confirmed, some cancelled later
	client   map[domain.SeatID]domain.SeatState
	seen     domain.SeatChanges
	version  int64
	lost     bool // Redis was lost once: what was begun before counts for no limit after
}

func newMachine(t *testing.T, rdb *redis.Client) *machine {
	w := load(t, rdb, func(s *domain.Show) {
		s.Queue = domain.QueueSettings{MaxActive: 3, RatePerMinute: 6, TurnSeconds: 5, SessionSeconds: 40, GraceSeconds: 15}
		s.Seating = domain.Seating{HoldSeconds: 20, SeatLimit: 3, Sections: []domain.Section{{Name: "A", Rows: 1, SeatsPerRow: 6}}}
	})
	return &machine{w: w, begun: map[domain.HoldID]domain.Booking{}, sold: map[domain.SeatID]domain.Booking{},
		client: map[domain.SeatID]domain.SeatState{}}
}

func (m *machine) person(r *rapid.T) domain.RequestID {
	return domain.RequestID("p" + strconv.Itoa(rapid.IntRange(1, 8).Draw(r, "person")))
}

func (m *machine) seats(r *rapid.T) []domain.SeatID {
	all := m.w.show.Seating.AllSeats()
	first := rapid.IntRange(0, len(all)-1).Draw(r, "first")
	return all[first:min(len(all), first+rapid.IntRange(1, 4).Draw(r, "seats"))]
}

func (m *machine) join(r *rapid.T) {
	request := m.person(r)
	place, created, err := m.w.Join(m.w.ctx(), JoinRequest{ShowID: m.w.show.ID, RequestID: request})
	switch {
	case errors.Is(err, domain.ErrSoldOut):
		return
	case err != nil:
		r.Fatalf("join: %v", err)
	case created && place.Status == domain.StatusAdmitted:
		if len(m.line) > 0 {
			r.Fatalf("%s passed those who wait: %v", request, m.line)
		}
		m.admitted = append(m.admitted, place.ServerTime)
	case created:
		m.line = append(m.line, request)
	}
	if place.Status == domain.StatusWaiting && m.line[place.Rank-1] != request {
		r.Fatalf("%s has rank %d in %v", request, place.Rank, m.line)
	}
}

// visit makes it likely that somebody is inside.
func (m *machine) visit(r *rapid.T) {
	m.join(r)
	m.admit(r)
	m.claimAs(r, m.person(r))
	for _, request := range m.keys(r).active {
		m.claimAs(r, domain.RequestID(request))
	}
}

func (m *machine) claim(r *rapid.T) { m.claimAs(r, m.person(r)) }

func (m *machine) claimAs(r *rapid.T, request domain.RequestID) {
	before, _ := m.w.Place(m.w.ctx(), m.w.show.ID, request)
	place, err := m.w.Claim(m.w.ctx(), m.w.show.ID, request)
	may := before.Status == domain.StatusAdmitted || before.Status == domain.StatusActive
	if err == nil && (!may || place.Status != domain.StatusActive) {
		r.Fatalf("%s claimed as %s and is %s", request, before.Status, place.Status)
	}
}

func (m *machine) leave(r *rapid.T) {
	request := m.person(r)
	m.w.leave(request)
	m.line = slices.DeleteFunc(m.line, func(id domain.RequestID) bool { return id == request })
}

func (m *machine) admit(r *rapid.T) {
	batch := rapid.IntRange(1, 3).Draw(r, "batch")
	result, err := m.w.Admit(m.w.ctx(), m.w.show.ID, AdmitOptions{Batch: batch})
	require.NoError(r, err)
	m.line = slices.DeleteFunc(m.line, func(id domain.RequestID) bool { return slices.Contains(result.Expired, id) })
	if len(result.Admitted) > batch || len(result.Admitted) > len(m.line) {
		r.Fatalf("let in %v of %v with batch %d", result.Admitted, m.line, batch)
	}
	for i, a := range result.Admitted {
		if m.line[i] != a.RequestID {
			r.Fatalf("let in %v before %v", result.Admitted, m.line)
		}
		m.admitted = append(m.admitted, a.ClaimBy.Add(-m.w.show.Queue.Turn()))
	}
	m.line = m.line[len(result.Admitted):]
}

func (m *machine) touch(r *rapid.T) {
	require.NoError(r, m.w.Touch(m.w.ctx(), m.w.show.ID, []domain.RequestID{m.person(r), m.person(r)}))
}

func (m *machine) time(r *rapid.T) {
	m.w.travel(time.Duration(rapid.IntRange(1, 9).Draw(r, "seconds")) * time.Second)
}

func (m *machine) configure(r *rapid.T) {
	m.w.change(func(s *domain.Show) { s.Paused = rapid.IntRange(0, 3).Draw(r, "paused") == 0 })
}

func (m *machine) hold(r *rapid.T) {
	m.holds++
	candidates := make([][]domain.SeatID, rapid.IntRange(1, 3).Draw(r, "candidates"))
	for i := range candidates {
		candidates[i] = m.seats(r)
	}
	request := m.insider(r)
	before, _ := m.w.Place(m.w.ctx(), m.w.show.ID, request)
	hold, err := m.w.Hold(m.w.ctx(), HoldRequest{ShowID: m.w.show.ID, RequestID: request,
		HoldID: domain.HoldID(fmt.Sprint("h", m.holds)), Candidates: candidates})
	if err == nil && before.Status != domain.StatusActive {
		r.Fatalf("%s holds %v as %s", request, hold.Seats, before.Status)
	}
}

// insider is mostly somebody who has claimed a turn, and sometimes anybody.
func (m *machine) insider(r *rapid.T) domain.RequestID {
	claimed := slices.Sorted(slices.Values(m.keys(r).claimed))
	if len(claimed) == 0 || rapid.IntRange(0, 4).Draw(r, "anybody") == 0 {
		return m.person(r)
	}
	return domain.RequestID(rapid.SampledFrom(claimed).Draw(r, "insider"))
}

// ownerOf is mostly a hold's owner, and sometimes anybody.
func (m *machine) ownerOf(r *rapid.T, id domain.HoldID) (domain.RequestID, bool) {
	owner, _, known := strings.Cut(m.keys(r).holds[string(id)], ":")
	if request := m.person(r); !known || rapid.IntRange(0, 2).Draw(r, "another") == 0 {
		return request, string(request) == owner
	}
	return domain.RequestID(owner), true
}

// changeHold swaps, extends or releases anybody's hold as anybody.
func (m *machine) changeHold(r *rapid.T) {
	id := m.anyHold(r)
	request, owner := m.ownerOf(r, id)
	var err error
	switch rapid.IntRange(0, 2).Draw(r, "change") {
	case 0:
		_, err = m.w.SwapHold(m.w.ctx(), m.w.show.ID, request, id, m.seats(r))
	case 1:
		_, err = m.w.ExtendHold(m.w.ctx(), m.w.show.ID, request, id)
	case 2:
		_, _, err = m.w.ReleaseHold(m.w.ctx(), m.w.show.ID, request, id)
	}
	if err == nil && !owner {
		r.Fatalf("%s changed the hold %s of another", request, id)
	}
}

func (m *machine) anyHold(r *rapid.T) domain.HoldID {
	return domain.HoldID(fmt.Sprint("h", rapid.IntRange(max(1, m.holds-4), max(1, m.holds)).Draw(r, "hold")))
}

func (m *machine) begin(r *rapid.T) {
	id := m.anyHold(r)
	request, _ := m.ownerOf(r, id)
	begun, seats, err := m.w.BeginBooking(m.w.ctx(), m.w.show.ID, request, id, domain.BookingID("b-"+id))
	if err != nil {
		return
	}
	m.begun[id] = m.w.booking(request, id, begun, seats...)
	if rapid.Bool().Draw(r, "published") {
		require.NoError(r, m.w.BookingPublished(m.w.ctx(), m.w.show.ID, id, begun))
	} else if rapid.Bool().Draw(r, "aborted") && m.w.AbortBooking(m.w.ctx(), m.w.show.ID, id, begun) == nil {
		delete(m.begun, id)
	}
}

// buy goes the whole way.
func (m *machine) buy(r *rapid.T) {
	m.hold(r)
	m.begin(r)
	m.settle(r)
}

// settle does what a worker does: SQL decides, Redis follows, and now and then the
// command is delivered again.
func (m *machine) settle(r *rapid.T) {
	if len(m.begun) == 0 {
		return
	}
	b := m.begun[rapid.SampledFrom(slices.Sorted(maps.Keys(m.begun))).Draw(r, "booking")]
	var soldBy []domain.SoldSeat
	for _, seat := range b.Seats {
		if other, ok := m.sold[seat]; ok {
			soldBy = append(soldBy, domain.SoldSeat{SeatID: seat, BookingID: other.BookingID, RequestID: other.RequestID})
		}
	}
	if len(soldBy) > 0 && !m.lost {
		r.Fatalf("a seat was held although SQL had sold it: %v", soldBy)
	}
	if len(soldBy) > 0 || rapid.IntRange(0, 4).Draw(r, "refused") == 0 {
		_, err := m.w.RejectBooking(m.w.ctx(), b, soldBy)
		require.NoError(r, err)
		delete(m.begun, b.HoldID)
		return
	}
	done := 0
	for range rapid.IntRange(1, 2).Draw(r, "deliveries") {
		settled, err := m.w.CompleteBooking(m.w.ctx(), b)
		require.NoError(r, err)
		if settled.Done {
			done++
		}
	}
	if done != 1 {
		r.Fatalf("settled %d times", done)
	}
	delete(m.begun, b.HoldID)
	m.booked = append(m.booked, b)
	for _, seat := range b.Seats {
		m.sold[seat] = b
	}
}

func (m *machine) cancel(r *rapid.T) {
	if len(m.booked) == 0 {
		return
	}
	b := rapid.SampledFrom(m.booked).Draw(r, "booking")
	settled, err := m.w.CancelBooking(m.w.ctx(), b)
	require.NoError(r, err)
	maps.DeleteFunc(m.sold, func(_ domain.SeatID, by domain.Booking) bool { return by.BookingID == b.BookingID })
	if again, err := m.w.CompleteBooking(m.w.ctx(), b); err != nil || again.Done {
		r.Fatalf("completed after the cancellation (%v): %v", settled.Done, err)
	}
}

func (m *machine) sweep(r *rapid.T) {
	_, _, _, err := m.w.SweepHolds(m.w.ctx(), m.w.show.ID, rapid.IntRange(1, 3).Draw(r, "limit"))
	require.NoError(r, err)
}

// lose takes Redis away for a moment, now and then, and restores it from SQL.
func (m *machine) lose(r *rapid.T) {
	if rapid.IntRange(0, 9).Draw(r, "lost") > 0 {
		return
	}
	require.NoError(r, m.w.rdb.Del(m.w.ctx(), "show:{"+string(m.w.show.ID)+"}").Err())
	var sold []domain.SoldSeat
	for seat, b := range m.sold {
		sold = append(sold, soldTo(b.RequestID, b.BookingID, seat)...)
	}
	m.w.show.Epoch++
	restored, err := m.w.Restore(m.w.ctx(), m.w.show, sold)
	require.NoError(r, err)
	require.True(r, restored)
	m.lost, m.line, m.admitted, m.seen, m.version = true, nil, nil, domain.SeatChanges{}, 0
}

// keys are a show's keys as they stand in Redis.
type keys struct {
	waiting, present, active, claimed []string
	seats, holds, bought              map[string]string
	soldOut                           bool
}

func (m *machine) keys(r *rapid.T) keys {
	name := func(id string) string { return patternOf(id).with(string(m.w.show.ID)) }
	ctx, pipe := m.w.ctx(), m.w.rdb.Pipeline()
	waiting, present := pipe.ZRange(ctx, name("waiting"), 0, -1), pipe.ZRange(ctx, name("presence"), 0, -1)
	active, claimed := pipe.ZRange(ctx, name("active"), 0, -1), pipe.SMembers(ctx, name("claimed"))
	seats, holds, bought := pipe.HGetAll(ctx, name("seats")), pipe.HGetAll(ctx, name("holds")), pipe.HGetAll(ctx, name("bought"))
	soldOut := pipe.Exists(ctx, name("sold_out"))
	_, err := pipe.Exec(ctx)
	require.NoError(r, err)
	return keys{waiting.Val(), present.Val(), active.Val(), claimed.Val(), seats.Val(), holds.Val(), bought.Val(), soldOut.Val() == 1}
}

// check looks at the keys themselves and at what the steps tell of them.
func (m *machine) check(r *rapid.T) {
	stats, k := m.w.stats(), m.keys(r)
	m.checkPeople(r, stats, k)
	m.checkRate(r)
	live := m.checkHolds(r, stats, k, m.w.seatStates(0, ""))
	m.checkSales(r, stats, k, live)
	m.checkClient(r)
	if stats.Version < m.version {
		r.Fatalf("version went back from %d to %d", m.version, stats.Version)
	}
	m.version = stats.Version
}

func (m *machine) checkPeople(r *rapid.T, stats domain.Stats, k keys) {
	var line []string
	for _, request := range m.line {
		line = append(line, string(request))
	}
	slices.Sort(k.present)
	switch {
	case stats.Active > stats.MaxActive:
		r.Fatalf("%d inside of %d", stats.Active, stats.MaxActive)
	case stats.Waiting+stats.Active+stats.Ended != stats.Joined:
		r.Fatalf("places do not add up: %+v", stats)
	case !slices.Equal(k.waiting, line):
		r.Fatalf("line is %v, arrived %v", k.waiting, line)
	}
	for _, request := range k.waiting {
		if !slices.Contains(k.present, request) {
			r.Fatalf("%s waits and has no contact", request)
		}
	}
	for _, request := range k.present {
		if !slices.Contains(k.waiting, request) && (!slices.Contains(k.active, request) || slices.Contains(k.claimed, request)) {
			r.Fatalf("%s has a contact, and neither waits nor has a turn to claim", request)
		}
	}
	for _, request := range k.claimed {
		if !slices.Contains(k.active, request) {
			r.Fatalf("%s has claimed and is not inside", request)
		}
	}
	for _, request := range k.waiting {
		if slices.Contains(k.active, request) {
			r.Fatalf("%s waits and is inside", request)
		}
	}
}

func (m *machine) checkRate(r *rapid.T) {
	rate := m.w.show.Queue.RatePerMinute
	for i := 0; i+rate < len(m.admitted); i++ {
		if m.admitted[i+rate].Sub(m.admitted[i]) <= time.Minute {
			r.Fatalf("more than %d in a minute: %v", rate, m.admitted[i:])
		}
	}
}

// checkHolds compares holds with their seats, and counts each person's live ones.
func (m *machine) checkHolds(r *rapid.T, stats domain.Stats, k keys, told map[domain.SeatID]string) map[string]int {
	perHold, live, held := map[string]int{}, map[string]int{}, 0
	for seat, value := range k.seats {
		parts := strings.Split(value, ":")
		if parts[0] == "s" {
			continue
		}
		perHold[parts[1]]++
		if told[domain.SeatID(seat)] != "" {
			held++
			live[parts[2]]++
		}
	}
	if int64(held) != stats.Held {
		r.Fatalf("%d held, told %+v", held, stats)
	}
	for id, value := range k.holds {
		parts := strings.Split(value, ":")
		if n := len(strings.FieldsFunc(parts[6], func(c rune) bool { return c == ',' })); n != perHold[id] {
			r.Fatalf("hold %s names %d seats and has %d", id, n, perHold[id])
		}
		if parts[1] == "h" && !slices.Contains(k.active, parts[0]) {
			r.Fatalf("%s holds %s and is gone", parts[0], id)
		}
		delete(perHold, id)
	}
	if len(perHold) > 0 {
		r.Fatalf("seats of holds that are not there: %v", perHold)
	}
	return live
}

// checkSales compares what is sold with SQL, and what each person has with the limit.
func (m *machine) checkSales(r *rapid.T, stats domain.Stats, k keys, live map[string]int) {
	bought, sold := map[string]int{}, 0
	for seat, value := range k.seats {
		booking, ok := strings.CutPrefix(value, "s:")
		if !ok {
			continue
		}
		sold++
		b := m.sold[domain.SeatID(seat)]
		if string(b.BookingID) != booking {
			r.Fatalf("%s is sold by %s, SQL says %q", seat, booking, b.BookingID)
		}
		bought[string(b.RequestID)]++
	}
	if int64(sold) != stats.Sold || sold != len(m.sold) {
		r.Fatalf("%d sold, %d in SQL, told %+v", sold, len(m.sold), stats)
	}
	for request, stored := range k.bought {
		if stored != strconv.Itoa(bought[request]) {
			r.Fatalf("%s bought %d, counted %s", request, bought[request], stored)
		}
	}
	for request, n := range bought {
		if k.bought[request] == "" {
			r.Fatalf("%s bought %d, counted nothing", request, n)
		}
		live[request] += n
	}
	for request, n := range live {
		if n > m.w.show.Seating.SeatLimit && !m.lost {
			r.Fatalf("%s has %d seats of %d", request, n, m.w.show.Seating.SeatLimit)
		}
	}
	if k.soldOut != (stats.Phase == domain.PhaseSoldOut) {
		r.Fatalf("sold-out key %v in phase %s", k.soldOut, stats.Phase)
	}
}

// checkClient keeps a map by deltas alone and compares it with the whole.
func (m *machine) checkClient(r *rapid.T) {
	id := m.w.show.ID
	delta, err := m.w.Seats(m.w.ctx(), id, m.seen.Version, "")
	require.NoError(r, err)
	if m.seen.Version == 0 {
		clear(m.client)
	}
	for _, seat := range delta.Seats {
		m.client[seat.ID] = seat.State
		if seat.State == domain.SeatFree {
			delete(m.client, seat.ID)
		}
	}
	m.seen = delta
	whole, err := m.w.Seats(m.w.ctx(), id, 0, "")
	require.NoError(r, err)
	if len(whole.Seats) != len(m.client) {
		r.Fatalf("by deltas %v, whole %v", m.client, whole.Seats)
	}
	for _, seat := range whole.Seats {
		if m.client[seat.ID] != seat.State {
			r.Fatalf("by deltas %v, whole %v", m.client, whole.Seats)
		}
	}
}
