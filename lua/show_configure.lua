-- Takes over a show's settings when they are newer than those in use.
-- USES    clock show
-- READS
-- WRITES  show sold_out
-- ARGV    1 clock offset in ms, 2 revision, then settings as field, value ...
-- RETURNS OK: taken over
--         STALE: what is in use is as new or newer
--         NOT_LOADED: the show is not there

local revision = tonumber(ARGV[2])
if revision <= show.revision then return {'STALE'} end

local was_sold_out = sold_out()
for i = 3, #ARGV, 2 do
  redis.call('HSET', key.show, ARGV[i], ARGV[i + 1])
  show[ARGV[i]] = tonumber(ARGV[i + 1])
end
mark_sold_out(was_sold_out)
bump()
return {'OK'}
