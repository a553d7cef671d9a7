-- Samples the line: the scores at the ranks of domain.RankGrid, for telling everybody
-- their rank from one small message. A long line is sampled over some calls, so that
-- others are served in between: ranks go on meaning those of the first call.
-- USES    clock show seats admission
-- READS   show waiting active rate holds deadlines
-- WRITES
-- ARGV    1 clock offset in ms, 2 ranks sampled without a gap, 3 ratio of further ranks,
--         4 longest line that is read whole instead of knot by knot, 5 most to sample,
--         6 people in the line when sampling began (0: begin), 7 rank and 8 score last
--         sampled, 9 lane
-- RETURNS OK, numbers, rank last sampled, scores ...
--         NOT_LOADED: the show is not there

local dense, ratio, whole, most = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local length, last, score = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local lane = tonumber(ARGV[9])
local there, front = waiting_in(lane), before(lane)
local moved = 0 -- by how much those behind have come forward since sampling began
if length == 0 then length = there else moved = last - (redis.call('ZCOUNT', key.waiting, '-inf', score) - front) end

local function read(first, to) return redis.call('ZRANGE', key.waiting, front + first - 1, front + to - 1, 'WITHSCORES') end
local line = {}
if length <= whole then line = read(1, there) elseif last < dense then line = read(1, math.min(dense, there)) end

local reply = {'OK', numbers(held_now()), last}
local function sample(rank)
  local at = rank - moved
  if at <= there then score = line[2 * at] or read(at, at)[2] end -- else left since: the last before counts
  reply[#reply + 1] = tonumber(score)
  reply[3], last = rank, rank
end

for rank = last + 1, math.min(length, dense) do sample(rank) end
local exact = dense
while last < length and #reply < most + 3 do
  exact = exact * ratio
  local rank = math.min(math.floor(exact), length)
  if rank > last then sample(rank) end
end
return reply
