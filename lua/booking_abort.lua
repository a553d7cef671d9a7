-- Turns a begun booking that was never published back into a plain hold with its old
-- deadline, or frees it when its person is no longer inside.
-- USES    clock show seats admission
-- READS   active claimed
-- WRITES  show seats holds deadlines begun owners seat_log
-- ARGV    1 clock offset in ms, 2 hold, 3 booking
-- RETURNS OK: done, or was a plain hold already
--         IN_PROGRESS: published; only a worker may settle it
--         HOLD_NOT_FOUND: unknown, or begun with another booking
--         NOT_LOADED: the show is not there

local hold, booking = read_hold(ARGV[2]), ARGV[3]
if not hold then return {'HOLD_NOT_FOUND'} end
if hold.state == 'h' or hold.state == 'x' then return {'OK'} end
if hold.booking ~= booking then return {'HOLD_NOT_FOUND'} end
if hold.state == 'p' then return {'IN_PROGRESS'} end

hold.state, hold.booking, hold.begun = 'h', '', 0
if session_of(hold.request) then
  mark_seats(hold)
  write_hold(hold)
  redis.call('ZREM', key.begun, hold.id)
  redis.call('ZADD', key.deadlines, int(hold.deadline), hold.id)
else
  release({hold})
  bump()
end
return {'OK'}
