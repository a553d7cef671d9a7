-- When a booking was asked to be cancelled; see the same number for PostgreSQL.

-- +goose Up
ALTER TABLE bookings ADD COLUMN cancel_asked_at INTEGER;

CREATE INDEX bookings_cancelling ON bookings (cancel_asked_at, id) WHERE status = 'CONFIRMED' AND cancel_asked_at IS NOT NULL;

-- +goose Down
DROP INDEX bookings_cancelling;
ALTER TABLE bookings DROP COLUMN cancel_asked_at;
