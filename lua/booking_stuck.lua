-- Tells begun bookings that nobody has settled for long, oldest first.
-- USES    clock show seats
-- READS   show holds begun
-- WRITES
-- ARGV    1 clock offset in ms, 2 age in ms, 3 most to tell
-- RETURNS OK, then for each {hold, booking, request, seats ...}
--         NOT_LOADED: the show is not there

local reply = {'OK'}
local age, limit = tonumber(ARGV[2]), ARGV[3]
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key.begun, '-inf', int(now - age), 'LIMIT', 0, limit)) do
  local hold = read_hold(id)
  reply[#reply + 1] = {id, hold.booking, hold.request, unpack(hold.seats)}
end
return reply
