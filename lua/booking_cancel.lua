-- Takes back a sale: its seats are free again and the show is no longer sold out.
-- A booking that was cancelled or refused before changes nothing.
-- USES    clock show seats admission settlement
-- READS   waiting active rate
-- WRITES  show seats holds deadlines begun owners bought seat_log sold_out settled
-- ARGV    1 clock offset in ms, 2 booking, 3 hold, 4 request, then seats
-- RETURNS OK, numbers, sold out has changed (1 or 0), {seat, state ...}, done (0: settled
--           before), freed a slot (0)
--         NOT_LOADED: the show is not there

local booking, id, request = ARGV[2], ARGV[3], ARGV[4]
local settled = redis.call('HGET', key.settled, booking)
if settled == 'X' or settled == 'R' then return settlement(0, 0, 0) end

local was_sold_out = sold_out()
local hold = read_hold(id)
release({hold})
local wanted, seats = {unpack(ARGV, 5)}, {}
for i, value in ipairs(read_many('HMGET', key.seats, wanted)) do
  if value == 's:' .. booking then seats[#seats + 1] = wanted[i] end
end
free_seats(seats)
bought({[request] = -#seats})
redis.call('HSET', key.settled, booking, 'X')
local changed = mark_sold_out(was_sold_out)
bump()
return settlement(1, 0, changed)
