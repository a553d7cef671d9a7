-- Tells which sessions have ended, in the order in which they did, for shops that check
-- passes themselves. Those that would be over by now are forgotten after a while.
-- USES    clock show
-- READS   show revoked
-- WRITES
-- ARGV    1 clock offset in ms, 2 lowest epoch and 3 number that were told last (0, 0: none),
--         4 how many at most
-- RETURNS OK, lowest epoch whose passes can count, number of the last one told, more (1:
--           ask again at once), then of each REQUEST:DEADLINE:EPOCH:ENDED
--         NOT_LOADED: the show is not there

local from, last, limit = show.passes_from or 0, tonumber(ARGV[3]), tonumber(ARGV[4])
-- Another life of the show counted anew, and one that lost its last moments counts on.
if tonumber(ARGV[2]) ~= from or last > (show.revoked or 0) then last = 0 end

local found = redis.call('ZRANGEBYSCORE', key.revoked, '(' .. int(last), '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
local reply = {'OK', from, last, #found == 2 * limit and 1 or 0}
for i = 1, #found, 2 do
  reply[#reply + 1] = found[i]
  reply[3] = tonumber(found[i + 1])
end
return reply
