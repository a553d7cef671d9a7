-- Samples the line: the scores at the ranks of domain.RankGrid, for telling everybody
-- their rank from one small message.
-- USES    clock show seats admission
-- READS   show waiting active rate holds deadlines
-- WRITES
-- ARGV    1 clock offset in ms, 2 ranks sampled without a gap, 3 ratio of further ranks,
--         4 longest line that is read whole instead of knot by knot
-- RETURNS OK, numbers, scores ...
--         NOT_LOADED: the show is not there

local dense, ratio, whole = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local waiting = redis.call('ZCARD', key.waiting)

local function read(first, last) return redis.call('ZRANGE', key.waiting, first, last, 'WITHSCORES') end
local line = waiting <= whole and read(0, -1) or read(0, dense - 1)

local reply = {'OK', numbers(held_now())}
local function sample(rank)
  local score = line[2 * rank] or read(rank - 1, rank - 1)[2]
  reply[#reply + 1] = tonumber(score)
end

for rank = 1, math.min(waiting, dense) do sample(rank) end
local exact, last = dense * ratio, dense
while waiting > dense and last < waiting do
  local rank = math.min(math.floor(exact), waiting)
  if rank > last then
    sample(rank)
    last = rank
  end
  exact = exact * ratio
end
return reply
