-- Tells where people stand. Expiry is judged here; nothing is written.
-- USES    clock show admission
-- READS   show waiting active claimed rate ended
-- WRITES
-- ARGV    1 clock offset in ms, then requests
-- RETURNS OK, numbers, then a place for each request (status NONE: there is none)
--         NOT_LOADED: the show is not there

local reply = {'OK', numbers(0)}
for i = 2, #ARGV do reply[#reply + 1] = place_of(ARGV[i]) end
return reply
