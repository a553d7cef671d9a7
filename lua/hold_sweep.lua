-- Tidies up holds that ran out. They are free without it; this tells everybody so.
-- USES    clock show seats
-- READS
-- WRITES  show seats holds deadlines begun owners seat_log
-- ARGV    1 clock offset in ms, 2 most holds to tidy
-- RETURNS OK, seat version, more (1: call again), freed seats
--         NOT_LOADED: the show is not there

local limit = tonumber(ARGV[2])
local lapsed = redis.call('ZRANGEBYSCORE', key.deadlines, '-inf', int(now), 'LIMIT', 0, limit)
lapse(read_holds(lapsed))

local freed = {}
for i = 1, #changes, 2 do freed[#freed + 1] = changes[i] end
if #freed > 0 then bump() end
return {'OK', show.seat_version, #lapsed == limit and 1 or 0, freed}
