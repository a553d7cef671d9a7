// Package store keeps what must not be lost in SQL: shows, bookings, the seats
// sold and chat. SQL has the last word on all of them; what Redis says about a
// sold seat is a copy that can be rebuilt from here.
//
// It runs on PostgreSQL and on an embedded SQLite file with the same promises:
//
//   - A seat has at most one confirmed booking. The primary key of booking_seats
//     says so, whatever any other part of the program believes.
//   - A booking is confirmed with all of its seats or with none.
//   - Every command has its effect at most once: its id is written in the
//     transaction of the effect, and a repeat is answered with what is stored.
//   - The sequence of a chat room has no gap, and nobody sees a message before
//     all earlier ones.
//   - A read pointer goes forward only, but for an explicit mark-as-unread,
//     which begins a new epoch and makes earlier marks void.
//
// The statements are written once. What differs between the two databases is
// behind the small interface engine. All instants are UTC with microseconds;
// those that the store sets itself come from the database's clock.
//
// Errors carry the conditions of package domain for errors.Is. Text that a
// database cannot hold is reported as *domain.InvalidError.
package store
