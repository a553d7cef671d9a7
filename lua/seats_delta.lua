-- Tells the present state of the seats that changed after a version, and of those
-- whose hold has run out since without having been tidied up.
-- USES    clock show seats
-- READS   show seats holds deadlines seat_log
-- WRITES
-- ARGV    1 clock offset in ms, 2 version, 3 request of the viewer
-- RETURNS OK, epoch, seat version, {seat, state, hold (only the viewer's own) ...}
--         NOT_LOADED: the show is not there

local changed = redis.call('ZRANGEBYSCORE', key.seat_log, '(' .. ARGV[2], '+inf')
for _, hold in ipairs(read_holds(lapsed_holds())) do
  for _, seat in ipairs(hold.seats) do changed[#changed + 1] = seat end
end

local seats = {}
for i, value in ipairs(read_many('HMGET', key.seats, changed)) do
  local state, hold = seen_by(ARGV[3], value)
  seats[#seats + 1] = changed[i]
  seats[#seats + 1] = state
  seats[#seats + 1] = hold
end
return {'OK', show.epoch, show.seat_version, seats}
