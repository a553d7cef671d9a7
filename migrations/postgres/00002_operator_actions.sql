-- What operators did, to which show, and when. A row is written before or with what it
-- is about; done_at is set when it has taken effect everywhere.
-- detail and outcome are JSON.

-- +goose Up
CREATE TABLE operator_actions (
    id       text COLLATE "C" PRIMARY KEY,
    show_id  text COLLATE "C" NOT NULL,
    operator text COLLATE "C" NOT NULL,
    action   text NOT NULL,
    detail   text NOT NULL DEFAULT '{}',
    outcome  text NOT NULL DEFAULT '',
    at       timestamptz NOT NULL,
    done_at  timestamptz
);

CREATE INDEX operator_actions_show ON operator_actions (show_id, at DESC, id DESC);

-- What died half-way, to be taken up again; as good as empty at all times.
CREATE INDEX operator_actions_undone ON operator_actions (at) WHERE done_at IS NULL;

-- +goose Down
DROP TABLE operator_actions;
