-- Frees a person's own hold at their wish. No turn is needed for that.
-- USES    clock show seats
-- READS
-- WRITES  show seats holds deadlines begun owners seat_log
-- ARGV    1 clock offset in ms, 2 request, 3 hold
-- RETURNS OK, seat version, released seats ... (none when it had run out)
--         HOLD_NOT_FOUND: unknown or another's
--         IN_PROGRESS: it is being booked
--         NOT_LOADED: the show is not there

local hold, problem = own_hold(ARGV[2], ARGV[3])
if problem and problem[1] == 'HOLD_EXPIRED' then return {'OK', show.seat_version} end
if problem then return problem end

release({hold})
bump()
return {'OK', show.seat_version, unpack(hold.seats)}
