-- Takes back a booking that SQL refused: its seats are free, but those that SQL says
-- are sold to others. Its person stays inside. Settled before changes nothing.
-- USES    clock show seats admission settlement
-- READS   waiting active rate
-- WRITES  show seats holds deadlines begun owners bought seat_log sold_out settled
-- ARGV    1 clock offset in ms, 2 booking, 3 hold, then of each conflict: seat, booking, request
-- RETURNS OK, numbers, sold out has changed (1 or 0), {seat, state ...}, done (0: settled
--           before), freed a slot (0)
--         NOT_LOADED: the show is not there

local booking, id = ARGV[2], ARGV[3]
if redis.call('HGET', key.settled, booking) then return settlement(0, 0, 0) end

local was_sold_out = sold_out()
local hold = read_hold(id)
release({hold})
local seats, sold_by = {}, {}
for i = 4, #ARGV, 3 do
  seats[#seats + 1], sold_by[#sold_by + 1] = ARGV[i], {booking = ARGV[i + 1], request = ARGV[i + 2]}
end
sell(seats, sold_by)
redis.call('HSET', key.settled, booking, 'R')
local changed = mark_sold_out(was_sold_out)
bump()
return settlement(1, 0, changed)
