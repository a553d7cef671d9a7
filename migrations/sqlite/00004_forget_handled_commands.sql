-- For PostgreSQL, commands that had their effect are found by their age with an index
-- that costs a sale nothing. SQLite has none of that kind, and reads the table instead.

-- +goose Up
SELECT 1;

-- +goose Down
SELECT 1;
