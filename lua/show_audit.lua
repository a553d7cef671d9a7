-- Tells all that Redis knows of a show's seats, holds and sales, and counts its line, as
-- of one instant, for comparison with SQL. It reads much: for operators, not for requests.
-- USES    clock show
-- READS   show waiting active claimed presence seats holds deadlines begun owners bought
--         sold_out settled
-- WRITES
-- ARGV    1 clock offset in ms
-- RETURNS OK, now, sold out key is there (1 or 0), {field, value ...} of the show, counts:
--           waiting, present, inside, of these with their time over, claimed, inside and
--           present, waiting in no lane of the show; requests that both wait and are inside, requests that claimed and are
--           not inside, {seat, value ...}, {hold, value ...}, holds with a deadline, holds
--           begun, {request, its holds ...}, {request, seats bought ...}, {booking, outcome ...}
--         NOT_LOADED: the show is not there

local function all(name) return redis.call('HGETALL', name) end
local inside = redis.call('ZRANGE', key.active, 0, -1)
local claimed = redis.call('SMEMBERS', key.claimed)

local twice, outside = {}, {}
for i, score in ipairs(read_many('ZMSCORE', key.waiting, inside)) do
  if score then twice[#twice + 1] = inside[i] end
end
for i, score in ipairs(read_many('ZMSCORE', key.active, claimed)) do
  if not score then outside[#outside + 1] = claimed[i] end
end
local turns_present = 0
for _, contact in ipairs(read_many('ZMSCORE', key.presence, inside)) do
  if contact then turns_present = turns_present + 1 end
end

return {'OK', now, redis.call('EXISTS', key.sold_out), stored,
  {redis.call('ZCARD', key.waiting), redis.call('ZCARD', key.presence), #inside,
    redis.call('ZCOUNT', key.active, '-inf', int(now)), #claimed, turns_present,
    redis.call('ZCOUNT', key.waiting, int(2 ^ 42 * ((show.lanes or 0) + 1)), '+inf')},
  twice, outside, all(key.seats), all(key.holds), redis.call('ZRANGE', key.deadlines, 0, -1),
  redis.call('ZRANGE', key.begun, 0, -1), all(key.owners), all(key.bought), all(key.settled)}
