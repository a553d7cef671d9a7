-- Tells a show's live numbers.
-- USES    clock show seats admission
-- READS   show waiting active rate holds deadlines
-- WRITES
-- ARGV    1 clock offset in ms
-- RETURNS OK, numbers
--         NOT_LOADED: the show is not there

return {'OK', numbers(held_now())}
