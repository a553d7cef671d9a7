-- Takes back a sale: its seats are free again and the show is no longer sold out.
-- A booking that was cancelled or refused before changes nothing.
-- USES    clock show seats admission settlement
-- READS   waiting active rate
-- WRITES  show seats holds deadlines begun owners bought seat_log sold_out settled
-- ARGV    1 clock offset in ms, 2 booking, 3 hold, 4 request, then seats
-- RETURNS OK, done (0: settled before), freed a slot (0), sold out has changed (1 or 0),
--           numbers, {seat, state ...}
--         NOT_LOADED: the show is not there

local booking, id, request = ARGV[2], ARGV[3], ARGV[4]
local settled = redis.call('HGET', key.settled, booking)
if settled == 'X' or settled == 'R' then return settlement(0, 0, 0) end

local was_sold_out = sold_out()
local hold = read_hold(id)
if hold then release(hold) end
for i = 5, #ARGV do
  if redis.call('HGET', key.seats, ARGV[i]) == 's:' .. booking then
    put_seat(ARGV[i], false)
    redis.call('HINCRBY', key.bought, request, -1)
  end
end
redis.call('HSET', key.settled, booking, 'X')
local changed = mark_sold_out(was_sold_out)
bump()
return settlement(1, 0, changed)
