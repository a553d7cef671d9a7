-- What waits for a worker, kept as for PostgreSQL; see the same number there.

-- +goose Up
CREATE TABLE pending_bookings (
    since      INTEGER NOT NULL,
    booking_id TEXT NOT NULL,
    PRIMARY KEY (since, booking_id)
) STRICT, WITHOUT ROWID;

INSERT INTO pending_bookings (since, booking_id) SELECT created_at, id FROM bookings WHERE status = 'PENDING';

-- +goose StatementBegin
CREATE TRIGGER bookings_recorded AFTER INSERT ON bookings WHEN NEW.status = 'PENDING' BEGIN
    INSERT INTO pending_bookings (since, booking_id) VALUES (NEW.created_at, NEW.id);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER bookings_decided AFTER UPDATE OF status ON bookings WHEN NEW.status <> 'PENDING' BEGIN
    DELETE FROM pending_bookings WHERE since = NEW.created_at AND booking_id = NEW.id;
END;
-- +goose StatementEnd

DROP INDEX bookings_pending;
DROP INDEX bookings_cancelling;
CREATE INDEX bookings_cancelling ON bookings (cancel_asked_at, id) WHERE cancel_asked_at IS NOT NULL AND cancelled_at IS NULL;

-- +goose Down
DROP TRIGGER bookings_recorded;
DROP TRIGGER bookings_decided;
DROP TABLE pending_bookings;
DROP INDEX bookings_cancelling;
CREATE INDEX bookings_cancelling ON bookings (cancel_asked_at, id) WHERE status = 'CONFIRMED' AND cancel_asked_at IS NOT NULL;
CREATE INDEX bookings_pending ON bookings (created_at, id) WHERE status = 'PENDING';
