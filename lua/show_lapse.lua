-- Says when the next turn or session runs out for which somebody waits.
-- USES    clock show admission
-- READS   show waiting active
-- WRITES
-- ARGV    1 clock offset in ms
-- RETURNS OK, ms from now (0: has run out), or -1 when there is none or nobody waits
--         NOT_LOADED: the show is not there

if phase() ~= 'OPEN' or redis.call('ZCARD', key.waiting) == 0 then return {'OK', -1} end
local first = redis.call('ZRANGE', key.active, 0, 0, 'WITHSCORES')
if not first[2] then return {'OK', -1} end
return {'OK', math.max(0, tonumber(first[2]) - now)}
