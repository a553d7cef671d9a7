-- Commands that had their effect long ago are forgotten in batches, and must be found by
-- their age. Rows are written in the order of time, so that a summary of each range of
-- pages is enough; unlike an ordered index it costs a sale nothing.

-- +goose Up
CREATE INDEX handled_commands_age ON handled_commands USING brin (handled_at);

-- +goose Down
DROP INDEX handled_commands_age;
