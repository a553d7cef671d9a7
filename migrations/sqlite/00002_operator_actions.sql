-- What operators did; see the same number for PostgreSQL.

-- +goose Up
CREATE TABLE operator_actions (
    id       TEXT PRIMARY KEY,
    show_id  TEXT NOT NULL,
    operator TEXT NOT NULL,
    action   TEXT NOT NULL,
    detail   TEXT NOT NULL DEFAULT '{}',
    outcome  TEXT NOT NULL DEFAULT '',
    at       INTEGER NOT NULL,
    done_at  INTEGER
) STRICT;

CREATE INDEX operator_actions_show ON operator_actions (show_id, at DESC, id DESC);

CREATE INDEX operator_actions_undone ON operator_actions (at) WHERE done_at IS NULL;

-- +goose Down
DROP TABLE operator_actions;
