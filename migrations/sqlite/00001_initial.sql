-- The same tables as for PostgreSQL, see there for what they are for. Instants
-- are whole microseconds since 1970 UTC, so that they come back exactly as written.

-- +goose Up
CREATE TABLE shows (
    id          TEXT PRIMARY KEY,
    title       TEXT NOT NULL,
    venue       TEXT NOT NULL,
    starts_at   INTEGER,
    prequeue_at INTEGER,
    opens_at    INTEGER NOT NULL,
    closes_at   INTEGER,
    paused      INTEGER NOT NULL,
    closed      INTEGER NOT NULL,
    message     TEXT NOT NULL,
    queue       TEXT NOT NULL,
    seating     TEXT NOT NULL,
    draw_seed   TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE bookings (
    id              TEXT PRIMARY KEY,
    command_id      TEXT NOT NULL,
    show_id         TEXT NOT NULL,
    person_id       TEXT NOT NULL,
    request_id      TEXT NOT NULL,
    hold_id         TEXT NOT NULL UNIQUE,
    idempotency_key TEXT,
    fingerprint     TEXT NOT NULL,
    seats           TEXT NOT NULL,
    price           INTEGER NOT NULL,
    status          TEXT NOT NULL CHECK (status IN ('PENDING', 'CONFIRMED', 'REJECTED', 'CANCELLED')),
    reason          TEXT NOT NULL DEFAULT '',
    conflicts       TEXT NOT NULL DEFAULT '[]',
    created_at      INTEGER NOT NULL,
    decided_at      INTEGER,
    cancelled_at    INTEGER,
    UNIQUE (person_id, idempotency_key)
) STRICT;

CREATE INDEX bookings_pending ON bookings (created_at, id) WHERE status = 'PENDING';

CREATE TABLE booking_seats (
    show_id    TEXT NOT NULL,
    seat_id    TEXT NOT NULL,
    booking_id TEXT NOT NULL,
    PRIMARY KEY (show_id, seat_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE handled_commands (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    booking_id TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    handled_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE chat_rooms (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    show_id    TEXT,
    last_seq   INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE chat_members (
    room_id    TEXT NOT NULL REFERENCES chat_rooms (id),
    person_id  TEXT NOT NULL,
    name       TEXT NOT NULL,
    joined_seq INTEGER NOT NULL,
    read_up_to INTEGER NOT NULL,
    read_epoch INTEGER NOT NULL,
    PRIMARY KEY (room_id, person_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX chat_members_person ON chat_members (person_id);
CREATE INDEX chat_rooms_by_show ON chat_rooms (show_id) WHERE show_id IS NOT NULL;

CREATE TABLE chat_messages (
    room_id     TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    sender      TEXT NOT NULL,
    sender_name TEXT NOT NULL,
    body        TEXT NOT NULL,
    sent_at     INTEGER NOT NULL,
    deleted     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (room_id, seq)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE chat_messages;
DROP TABLE chat_members;
DROP TABLE chat_rooms;
DROP TABLE handled_commands;
DROP TABLE booking_seats;
DROP TABLE bookings;
DROP TABLE shows;
