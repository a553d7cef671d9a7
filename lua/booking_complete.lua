-- Makes a confirmed booking true in Redis, whatever is left of its hold: what SQL sold
-- is sold. Ends its person's session. A booking settled before changes nothing.
-- USES    clock show seats admission ending settlement
-- READS   rate
-- WRITES  show waiting active claimed presence ended revoked seats holds deadlines begun
--         owners bought seat_log sold_out settled
-- ARGV    1 clock offset in ms, 2 booking, 3 hold, 4 request, then seats
-- RETURNS OK, done (0: settled before), freed a slot (1 or 0), sold out has changed (1 or 0),
--           numbers, {seat, state ...}
--         NOT_LOADED: the show is not there

local booking, id, request = ARGV[2], ARGV[3], ARGV[4]
if redis.call('HGET', key.settled, booking) then return settlement(0, 0, 0) end

local was_sold_out = sold_out()
local deadline = score_of(key.active, request)
if deadline then finish({request}, 'LEFT', 'booked') end
local seats = 1000 * (#ARGV - 4) -- a moving average of the last buyers, in thousandths of a seat
local average = show.per_buyer or seats
count('per_buyer', math.floor(average + (seats - average) / 16 + 0.5) - (show.per_buyer or 0))
for i = 5, #ARGV do sell(ARGV[i], booking, request, id) end
local hold = read_hold(id)
if hold then release(hold) end
redis.call('HSET', key.settled, booking, 'C')
local changed = mark_sold_out(was_sold_out)
bump()
return settlement(1, deadline and not over(deadline) and 1 or 0, changed)
