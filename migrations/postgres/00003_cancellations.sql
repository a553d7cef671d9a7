-- When a booking was asked to be cancelled: written before the command is sent, so that
-- one that is lost is found again. It stays as a record once the booking is cancelled.

-- +goose Up
ALTER TABLE bookings ADD COLUMN cancel_asked_at timestamptz;

-- What was asked for and is not done; as good as empty at all times. Selling pays nothing
-- for it: no booking enters it by being sold.
CREATE INDEX bookings_cancelling ON bookings (cancel_asked_at, id) WHERE status = 'CONFIRMED' AND cancel_asked_at IS NOT NULL;

-- +goose Down
DROP INDEX bookings_cancelling;
ALTER TABLE bookings DROP COLUMN cancel_asked_at;
