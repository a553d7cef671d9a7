-- Tells all that is known of one place, for an operator who is asked about it.
-- USES    clock show seats admission
-- READS   show waiting active claimed presence rate ended trail arrivals holds deadlines
-- WRITES
-- ARGV    1 clock offset in ms, 2 request, 3 score below which all places are drawn
-- RETURNS OK, numbers, place, last contact in ms (none kept: -1), trail, how it ended (it
--           has not: empty), from when silence ends places in ms, joined after and before in
--           ms (not known: -1), turn in ms, grace in ms, turns allowed in a minute,
--           admissions of the last seconds as {second, number ...}
--         NOT_LOADED: the show is not there

local request = ARGV[2]
local place = place_of(request)
local nth = place[3] % SPAN - tonumber(ARGV[3]) -- of the arrivals; none for a drawn place

local after, before = -1, -1
if nth > 0 then
  after = redis.call('ZREVRANGEBYSCORE', key.arrivals, '(' .. int(nth), '-inf', 'LIMIT', 0, 1)[1] or -1
  before = redis.call('ZRANGEBYSCORE', key.arrivals, int(nth), '+inf', 'LIMIT', 0, 1)[1] or -1
end
local buckets = {}
for i, value in ipairs(redis.call('HGETALL', key.rate)) do buckets[i] = tonumber(value) end
return {'OK', numbers(held_now()), place, score_of(key.presence, request) or -1,
  redis.call('HGET', key.trail, request) or '', redis.call('HGET', key.ended, request) or '', show.drop_after,
  tonumber(after), tonumber(before), show.turn_ms, show.grace_ms, allowance(), buckets}
