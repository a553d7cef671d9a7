-- Ids are compared byte by byte (COLLATE "C"): a sort order that no locale and no
-- upgrade of the system's library can change, and the cheapest one.
-- Nothing refers to a show by foreign key: each booking would lock the same row
-- of a hot show, and shows are never deleted.

-- +goose Up
CREATE TABLE shows (
    id          text COLLATE "C" PRIMARY KEY,
    title       text NOT NULL,
    venue       text NOT NULL,
    starts_at   timestamptz,
    prequeue_at timestamptz,
    opens_at    timestamptz NOT NULL,
    closes_at   timestamptz,
    paused      boolean NOT NULL,
    closed      boolean NOT NULL,
    message     text NOT NULL,
    queue       jsonb NOT NULL,
    seating     jsonb NOT NULL,
    draw_seed   text NOT NULL,
    revision    bigint NOT NULL,
    epoch       bigint NOT NULL,
    created_at  timestamptz NOT NULL
);

-- seats and conflicts are JSON arrays of seat ids. idempotency_key is null for a
-- booking that was recreated from its command after SQL had lost it.
-- One booking is updated at most twice, soon after it was written: the room that
-- the fill factor leaves keeps the new version on the same page.
CREATE TABLE bookings (
    id              text COLLATE "C" PRIMARY KEY,
    command_id      text COLLATE "C" NOT NULL,
    show_id         text COLLATE "C" NOT NULL,
    person_id       text COLLATE "C" NOT NULL,
    request_id      text COLLATE "C" NOT NULL,
    hold_id         text COLLATE "C" NOT NULL UNIQUE,
    idempotency_key text COLLATE "C",
    fingerprint     text NOT NULL,
    seats           text NOT NULL,
    price           bigint NOT NULL,
    status          text NOT NULL CHECK (status IN ('PENDING', 'CONFIRMED', 'REJECTED', 'CANCELLED')),
    reason          text NOT NULL DEFAULT '',
    conflicts       text NOT NULL DEFAULT '[]',
    created_at      timestamptz NOT NULL,
    decided_at      timestamptz,
    cancelled_at    timestamptz,
    UNIQUE (person_id, idempotency_key)
) WITH (fillfactor = 75);

-- What waits for a worker, oldest first; small, whatever the number of bookings.
CREATE INDEX bookings_pending ON bookings (created_at, id) WHERE status = 'PENDING';

-- The seats of confirmed bookings, and of no others: a cancellation deletes its
-- rows. This primary key is what makes a double sale impossible.
CREATE TABLE booking_seats (
    show_id    text COLLATE "C" NOT NULL,
    seat_id    text COLLATE "C" NOT NULL,
    booking_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (show_id, seat_id)
);

-- Written in the transaction of the effect, so that a command has it once.
CREATE TABLE handled_commands (
    id         text COLLATE "C" PRIMARY KEY,
    kind       text NOT NULL,
    booking_id text COLLATE "C" NOT NULL,
    outcome    text NOT NULL,
    handled_at timestamptz NOT NULL
);

CREATE TABLE chat_rooms (
    id         text COLLATE "C" PRIMARY KEY,
    name       text NOT NULL,
    show_id    text COLLATE "C",
    last_seq   bigint NOT NULL,
    created_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX chat_rooms_by_show ON chat_rooms (show_id) WHERE show_id IS NOT NULL;

-- Read pointers move often and no index has them: with room on the page an
-- update writes no index.
CREATE TABLE chat_members (
    room_id    text COLLATE "C" NOT NULL REFERENCES chat_rooms (id),
    person_id  text COLLATE "C" NOT NULL,
    name       text NOT NULL,
    joined_seq bigint NOT NULL,
    read_up_to bigint NOT NULL,
    read_epoch bigint NOT NULL,
    PRIMARY KEY (room_id, person_id)
) WITH (fillfactor = 70);

CREATE INDEX chat_members_person ON chat_members (person_id);

CREATE TABLE chat_messages (
    room_id     text COLLATE "C" NOT NULL,
    seq         bigint NOT NULL,
    sender      text COLLATE "C" NOT NULL,
    sender_name text NOT NULL,
    body        text NOT NULL,
    sent_at     timestamptz NOT NULL,
    deleted     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (room_id, seq)
);

-- +goose Down
DROP TABLE chat_messages, chat_members, chat_rooms, handled_commands, booking_seats, bookings, shows;
