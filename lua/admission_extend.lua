-- Gives somebody whose page cannot be seen their turn's time once more. A second time
-- changes nothing, and whoever has claimed needs none.
-- USES    clock show admission
-- READS   waiting claimed rate ended
-- WRITES  show active trail
-- ARGV    1 clock offset in ms, 2 request
-- RETURNS OK, numbers, place, extended (1 or 0)
--         NOT_ADMITTED: waiting, or the turn is over
--         NOT_JOINED: no place at all
--         NOT_LOADED: the show is not there

local request = ARGV[2]
local place = place_of(request)
local status, deadline = place[1], place[4]
if status == 'NONE' then return {'NOT_JOINED'} end
if status ~= 'ADMITTED' and status ~= 'ACTIVE' then return {'NOT_ADMITTED'} end

if status == 'ACTIVE' or was_extended(request) then return {'OK', numbers(0), place, 0} end
note(request, 'admitted:' .. int(deadline - show.turn_ms))
note(request, 'extended:' .. int(now))
redis.call('ZADD', key.active, int(deadline + show.turn_ms), request)
bump()
return {'OK', numbers(0), place_of(request), 1}
