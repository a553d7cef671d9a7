-- Tells who took part in the draw, in pages, with the scores of those who wait still.
-- USES    clock show seats admission
-- READS   show waiting active rate draw
-- WRITES
-- ARGV    1 clock offset in ms, 2 how many to leave out, 3 most to tell, 4 score below
--         which all places are drawn, 5 scores wanted (1 or 0)
-- RETURNS OK, numbers, entries in all, who wait with a drawn place, requests, scores of
--           those (empty: waits no more)
--         NOT_LOADED: the show is not there

local from = tonumber(ARGV[2])
local requests = redis.call('LRANGE', key.draw, from, from + tonumber(ARGV[3]) - 1)
local scores = ARGV[5] == '1' and read_many('ZMSCORE', key.waiting, requests) or {}
for i = 1, #scores do scores[i] = scores[i] or '' end
local waiting = 0
for lane = 0, show.lanes or 0 do
  waiting = waiting + redis.call('ZCOUNT', key.waiting, stretch(lane), '(' .. int(lane * SPAN + tonumber(ARGV[4])))
end
return {'OK', numbers(0), redis.call('LLEN', key.draw), waiting, requests, scores}
