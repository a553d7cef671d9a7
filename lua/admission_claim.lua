-- Takes a turn: its short deadline becomes a session's. Claiming again changes nothing.
-- USES    clock show admission
-- READS   waiting rate ended
-- WRITES  show active claimed presence trail
-- ARGV    1 clock offset in ms, 2 request
-- RETURNS OK, numbers, place
--         NOT_ADMITTED: waiting, or the turn is over
--         NOT_JOINED: no place at all
--         NOT_LOADED: the show is not there

local request = ARGV[2]
local place = place_of(request)
local status = place[1]
if status == 'NONE' then return {'NOT_JOINED'} end
if status ~= 'ADMITTED' and status ~= 'ACTIVE' then return {'NOT_ADMITTED'} end

if status == 'ADMITTED' then
  if not was_extended(request) then note(request, 'admitted:' .. int(place[4] - show.turn_ms)) end
  note(request, 'claimed:' .. int(now))
  learn_turns(1, 0)
  redis.call('SADD', key.claimed, request)
  redis.call('ZREM', key.presence, request) -- kept while the turn was not claimed
  redis.call('ZADD', key.active, int(now + show.session_ms), request)
  bump()
end
return {'OK', numbers(0), place_of(request)}
