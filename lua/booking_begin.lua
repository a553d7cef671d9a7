-- Moves a hold to "being booked": from now it cannot lapse. Begun again it answers the
-- booking id it was first begun with, for it is the same intent.
-- USES    clock show seats admission
-- READS   show active claimed
-- WRITES  seats holds deadlines begun
-- ARGV    1 clock offset in ms, 2 request, 3 hold, 4 booking
-- RETURNS OK, booking, seats ...
--         IN_PROGRESS: begun just now by another call that has not published it yet
--         CLOSED, NOT_ADMITTED, NOT_OPEN with the opening in ms: no bookings now
--         HOLD_NOT_FOUND: unknown or another's
--         HOLD_EXPIRED: ran out
--         NOT_LOADED: the show is not there

local request, id, booking = ARGV[2], ARGV[3], ARGV[4]
local ABANDONED = 10 * 1000 -- a call that has not published after this is given up on

local hold, problem = own_hold(request, id)
if problem and problem[1] == 'IN_PROGRESS' then
  local other = hold.state == 'b' and hold.booking ~= booking
  if other and not over(hold.begun + ABANDONED) then return problem end
  booking = hold.booking
else
  local refused = problem or refusal(request)
  if refused then return refused end
end

if hold.state ~= 'p' then
  hold.state, hold.booking, hold.begun = 'b', booking, now
  mark_seats(hold)
  write_hold(hold)
  redis.call('ZREM', key.deadlines, id)
  redis.call('ZADD', key.begun, int(now), id)
end
return {'OK', booking, unpack(hold.seats)}
