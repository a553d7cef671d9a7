-- No index may have a column that deciding a booking changes, neither as a key nor in its
-- predicate: the new version of the row then stays on its page and enters no index. So
-- what waits for a worker has a table of its own instead of an index on the status. The
-- database keeps it, like an index, for whatever process writes bookings.
--
-- Writers wait until this is done: once for a pass over all bookings.

-- +goose Up
LOCK TABLE bookings IN ACCESS EXCLUSIVE MODE;

-- Oldest first; small, whatever the number of bookings. All of it passes through within
-- seconds, so it is cleaned by what left it and not by its share, and is not shortened.
CREATE TABLE pending_bookings (
    since      timestamptz NOT NULL,
    booking_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (since, booking_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = off);

INSERT INTO pending_bookings (since, booking_id) SELECT created_at, id FROM bookings WHERE status = 'PENDING';

-- Both work on all rows of a statement at once and have no parameters: each session plans
-- them once, whatever it does with other plans.
-- +goose StatementBegin
CREATE FUNCTION bookings_recorded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pending_bookings (since, booking_id) SELECT created_at, id FROM recorded WHERE status = 'PENDING';
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Its plan is made when any number of bookings waits, and used when any other does: it has
-- no join to choose, and finds each row by the key. Nobody else deletes these rows
-- meanwhile, because their bookings have just been written here.
-- +goose StatementBegin
CREATE FUNCTION bookings_decided() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    DELETE FROM pending_bookings WHERE ctid = ANY (ARRAY(
        SELECT (SELECT p.ctid FROM pending_bookings p WHERE p.since = d.created_at AND p.booking_id = d.id)
        FROM decided d WHERE d.status <> 'PENDING'));
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER bookings_recorded AFTER INSERT ON bookings
    REFERENCING NEW TABLE AS recorded FOR EACH STATEMENT EXECUTE FUNCTION bookings_recorded();
CREATE TRIGGER bookings_decided AFTER UPDATE ON bookings
    REFERENCING NEW TABLE AS decided FOR EACH STATEMENT EXECUTE FUNCTION bookings_decided();

DROP INDEX bookings_pending;
DROP INDEX bookings_cancelling;
CREATE INDEX bookings_cancelling ON bookings (cancel_asked_at, id) WHERE cancel_asked_at IS NOT NULL AND cancelled_at IS NULL;

-- A group decides whole pages of bookings in one transaction: each page must have room for
-- all of its rows a second time. What comes later finds the first version cleared away.
ALTER TABLE bookings SET (fillfactor = 45);

-- +goose Down
LOCK TABLE bookings IN ACCESS EXCLUSIVE MODE;
ALTER TABLE bookings SET (fillfactor = 75);
DROP TRIGGER bookings_recorded ON bookings;
DROP TRIGGER bookings_decided ON bookings;
DROP FUNCTION bookings_recorded();
DROP FUNCTION bookings_decided();
DROP TABLE pending_bookings;
DROP INDEX bookings_cancelling;
CREATE INDEX bookings_cancelling ON bookings (cancel_asked_at, id) WHERE status = 'CONFIRMED' AND cancel_asked_at IS NOT NULL;
CREATE INDEX bookings_pending ON bookings (created_at, id) WHERE status = 'PENDING';
