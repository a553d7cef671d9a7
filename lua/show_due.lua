-- Says whether an admission tick is due. The next one is a time in the show's hash,
-- so of all who ask in one interval one is told yes, and no lock outlives its owner.
-- USES    clock show
-- READS
-- WRITES  show arrivals
-- ARGV    1 clock offset in ms, 2 interval in ms
-- RETURNS OK, 1: due; 0: not
--         NOT_LOADED: the show is not there

local every = tonumber(ARGV[2])
if now < show.next_tick and show.next_tick <= now + every then return {'OK', 0} end

-- Late askers do not shift the beat; after a pause it begins anew.
local following = show.next_tick + every
if over(following) or following > now + every then following = now + every end
redis.call('HSET', key.show, 'next_tick', int(following))

local KEPT = 7200 -- two hours of ticks of a second
local newest = redis.call('ZREVRANGE', key.arrivals, 0, 0, 'WITHSCORES')
if show.seq > tonumber(newest[2] or 0) then
  redis.call('ZADD', key.arrivals, int(show.seq), int(now))
  redis.call('ZREMRANGEBYRANK', key.arrivals, 0, -KEPT - 1)
end
return {'OK', 1}
