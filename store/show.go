package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"foyer/domain"
)

// maxShows bounds how many shows are listed.
const maxShows = 1000

const showColumns = `id, title, venue, starts_at, prequeue_at, opens_at, closes_at, paused, closed, message,
	queue, seating, draw_seed, revision, epoch, created_at`

func scanShow(scan scanner) (domain.Show, error) {
	var s domain.Show
	var starts, prequeue, opens, closes, created instant
	var queue, seating string
	err := scan(&s.ID, &s.Title, &s.Venue, &starts, &prequeue, &opens, &closes, &s.Paused, &s.Closed, &s.Message,
		&queue, &seating, &s.DrawSeed, &s.Revision, &s.Epoch, &created)
	if err != nil {
		return domain.Show{}, err
	}
	s.StartsAt, s.PrequeueAt, s.OpensAt, s.ClosesAt, s.CreatedAt = starts.at, prequeue.at, opens.time(), closes.at, created.time()
	return s, errors.Join(json.Unmarshal([]byte(queue), &s.Queue), json.Unmarshal([]byte(seating), &s.Seating))
}

func checkShow(s domain.Show) error {
	fields := []field{{"id", string(s.ID)}, {"title", s.Title}, {"venue", s.Venue}, {"message", s.Message}, {"draw.seed", s.DrawSeed}}
	for i, section := range s.Seating.Sections {
		fields = append(fields, field{fmt.Sprintf("seating.sections[%d].name", i), section.Name})
	}
	return checkText(fields...)
}

// CreateShow stores a show as it is, times cut to microseconds. Where CreatedAt
// is zero it is now. It fails with domain.ErrShowExists when the id is taken.
func (db *DB) CreateShow(ctx context.Context, s domain.Show) error {
	if err := db.createShow(ctx, s); err != nil {
		return fmt.Errorf("create show %s: %w", s.ID, err)
	}
	return nil
}

func (db *DB) createShow(ctx context.Context, s domain.Show) error {
	if err := checkShow(s); err != nil {
		return err
	}
	var created *time.Time
	if !s.CreatedAt.IsZero() {
		created = &s.CreatedAt
	}
	return db.engine.write(ctx, func(tx session) error {
		_, inserted, err := first(ctx, tx, one[string], `
			INSERT INTO shows (`+showColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, COALESCE($16, `+db.engine.now()+`))
			ON CONFLICT (id) DO NOTHING RETURNING id`,
			s.ID, s.Title, s.Venue, s.StartsAt, s.PrequeueAt, s.OpensAt, s.ClosesAt, s.Paused, s.Closed, s.Message,
			encode(s.Queue), encode(s.Seating), s.DrawSeed, s.Revision, s.Epoch, created)
		if err == nil && !inserted {
			return domain.ErrShowExists
		}
		return err
	})
}

// Show returns one show, or domain.ErrShowNotFound.
func (db *DB) Show(ctx context.Context, id domain.ShowID) (domain.Show, error) {
	s, err := findShow(ctx, db.engine, id, "")
	if err != nil {
		return domain.Show{}, fmt.Errorf("read show %s: %w", id, err)
	}
	return s, nil
}

func findShow(ctx context.Context, s session, id domain.ShowID, lock string) (domain.Show, error) {
	if checkText(field{"id", string(id)}) != nil {
		return domain.Show{}, domain.ErrShowNotFound
	}
	show, found, err := first(ctx, s, scanShow, `SELECT `+showColumns+` FROM shows WHERE id = $1`+lock, id)
	if err == nil && !found {
		err = domain.ErrShowNotFound
	}
	return show, err
}

// Shows lists the shows, newest first, at most 1000.
func (db *DB) Shows(ctx context.Context) ([]domain.Show, error) {
	shows, err := query(ctx, db.engine, scanShow,
		`SELECT `+showColumns+` FROM shows ORDER BY created_at DESC, id DESC LIMIT $1`, maxShows)
	if err != nil {
		return nil, fmt.Errorf("list shows: %w", err)
	}
	return shows, nil
}

// UpdateShow lets change edit the show as it is now, while nobody else can, and
// stores the result with the next revision. An error of change is returned and
// nothing is stored. What identifies the show and counts its changes stays as it
// was, whatever change does to it. change may run more than once, and must not
// use the database.
func (db *DB) UpdateShow(ctx context.Context, id domain.ShowID, change func(*domain.Show) error) (domain.Show, error) {
	var updated domain.Show
	err := db.engine.write(ctx, func(tx session) error {
		old, err := findShow(ctx, tx, id, db.engine.locked("shows"))
		if err != nil {
			return err
		}
		s := old
		if err := change(&s); err != nil {
			return err
		}
		if err := checkShow(s); err != nil {
			return err
		}
		updated, err = saveShow(ctx, tx, id, s)
		return err
	})
	if err != nil {
		return domain.Show{}, fmt.Errorf("update show %s: %w", id, err)
	}
	return updated, nil
}

func saveShow(ctx context.Context, tx session, id domain.ShowID, s domain.Show) (domain.Show, error) {
	saved, _, err := first(ctx, tx, scanShow, `
		UPDATE shows SET title = $2, venue = $3, starts_at = $4, prequeue_at = $5, opens_at = $6, closes_at = $7,
			paused = $8, closed = $9, message = $10, queue = $11, seating = $12, draw_seed = $13, revision = revision + 1
		WHERE id = $1 RETURNING `+showColumns,
		id, s.Title, s.Venue, s.StartsAt, s.PrequeueAt, s.OpensAt, s.ClosesAt,
		s.Paused, s.Closed, s.Message, encode(s.Queue), encode(s.Seating), s.DrawSeed)
	return saved, err
}

// NextEpoch begins the show's next epoch; being a change, it has the next
// revision too.
func (db *DB) NextEpoch(ctx context.Context, id domain.ShowID) (domain.Show, error) {
	var updated domain.Show
	err := db.engine.write(ctx, func(tx session) error {
		if _, err := findShow(ctx, tx, id, db.engine.locked("shows")); err != nil {
			return err
		}
		var err error
		updated, _, err = first(ctx, tx, scanShow,
			`UPDATE shows SET epoch = epoch + 1, revision = revision + 1 WHERE id = $1 RETURNING `+showColumns, id)
		return err
	})
	if err != nil {
		return domain.Show{}, fmt.Errorf("begin next epoch of show %s: %w", id, err)
	}
	return updated, nil
}

// SoldSeats lists the seats of a show's confirmed bookings by seat id. Their
// number is the number sold: nothing else counts it.
func (db *DB) SoldSeats(ctx context.Context, id domain.ShowID) ([]domain.SoldSeat, error) {
	sold, err := query(ctx, db.engine, scanSold, `
		SELECT s.show_id, s.seat_id, s.booking_id, b.request_id
		FROM booking_seats s JOIN bookings b ON b.id = s.booking_id
		WHERE s.show_id = $1 ORDER BY s.seat_id`, id)
	if err != nil {
		return nil, fmt.Errorf("list sold seats of show %s: %w", id, err)
	}
	seats := make([]domain.SoldSeat, len(sold))
	for i, s := range sold {
		seats[i] = s.SoldSeat
	}
	return seats, nil
}

// soldSeat is a sold seat with its show.
type soldSeat struct {
	show domain.ShowID
	domain.SoldSeat
}

func scanSold(scan scanner) (soldSeat, error) {
	var s soldSeat
	err := scan(&s.show, &s.SeatID, &s.BookingID, &s.RequestID)
	return s, err
}
