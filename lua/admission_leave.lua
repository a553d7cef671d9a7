-- Ends a person's place at their wish or an operator's, waiting or inside, and lets go of
-- their holds but for seats that are being booked.
-- USES    clock show seats admission ending
-- READS
-- WRITES  show waiting active claimed presence ended revoked seats holds deadlines begun
--         owners seat_log
-- ARGV    1 clock offset in ms, 2 request, 3 why (left or removed)
-- RETURNS OK, left (1 or 0), freed a slot (1 or 0), seat version, epoch, version, freed seats
--         NOT_LOADED: the show is not there

local request = ARGV[2]
local deadline = score_of(key.active, request)
local waited = redis.call('ZSCORE', key.waiting, request)
local was_over = deadline and over(deadline)

if waited or deadline then
  local by_hand = ARGV[3] == 'removed' and 'EXPIRED' or 'LEFT'
  if was_over then finish({request}, 'EXPIRED') else finish({request}, by_hand, ARGV[3]) end
  bump()
end
local freed = {}
for i = 1, #changes, 2 do freed[#freed + 1] = changes[i] end
return {'OK', (waited or deadline and not was_over) and 1 or 0, deadline and not was_over and 1 or 0,
  show.seat_version, show.epoch, show.version, freed}
