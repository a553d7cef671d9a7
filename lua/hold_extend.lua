-- Gives a hold its full time again, from now, but not beyond its ceiling.
-- USES    clock show seats admission
-- READS   show active claimed
-- WRITES  seats holds deadlines
-- ARGV    1 clock offset in ms, 2 request, 3 hold
-- RETURNS OK, deadline, ceiling, now, seat version, seats ...
--         CLOSED, NOT_ADMITTED, NOT_OPEN with the opening in ms: no holds now
--         HOLD_NOT_FOUND: unknown or another's
--         HOLD_EXPIRED: ran out
--         IN_PROGRESS: it is being booked
--         NOT_LOADED: the show is not there

local request, id = ARGV[2], ARGV[3]
local hold, problem = own_hold(request, id)
local refused = problem or refusal(request)
if refused then return refused end

hold.deadline = math.max(hold.deadline, math.min(now + show.hold_ms, hold.ceiling))
mark_seats(hold)
write_hold(hold)
redis.call('ZADD', key.deadlines, int(hold.deadline), id)
return {'OK', hold.deadline, hold.ceiling, now, show.seat_version, unpack(hold.seats)}
