-- The line, the people inside, and the rate at which they come in.

local function score_of(zset, request)
  local score = redis.call('ZSCORE', zset, request)
  return score and tonumber(score)
end

-- Where a show has lanes each has a stretch of the scores, the ordinary line the first; a
-- show without has no field lanes, and one stretch. See domain.LaneSpan.
local SPAN = 2 ^ 42

local function lane_of(score) return math.floor(score / SPAN) end

local function stretch(lane) return int(lane * SPAN), '(' .. int((lane + 1) * SPAN) end

local function waiting_in(lane)
  if not show.lanes then return redis.call('ZCARD', key.waiting) end
  return redis.call('ZCOUNT', key.waiting, stretch(lane))
end

-- How many stand before a lane's stretch.
local function before(lane)
  if lane == 0 then return 0 end
  return redis.call('ZCOUNT', key.waiting, '-inf', '(' .. int(lane * SPAN))
end

-- People inside or with a turn. Whose deadline is over is outside, swept or not.
local function inside() return redis.call('ZCOUNT', key.active, '(' .. int(now), '+inf') end

-- Admissions are counted by the second. 61 buckets reach at least 60 s back from
-- any instant, so no 60 s hold more than the rate.
local WINDOW = 60
local second = math.floor(now / 1000)

local lately, outdated -- admissions, and buckets further back, once they were read

local function admitted_lately()
  if lately then return lately end
  local buckets = redis.call('HGETALL', key.rate)
  lately, outdated = 0, {}
  for i = 1, #buckets, 2 do
    if tonumber(buckets[i]) >= second - WINDOW then
      lately = lately + tonumber(buckets[i + 1])
    else
      outdated[#outdated + 1] = buckets[i]
    end
  end
  return lately
end

-- Admissions of a second that has not come yet were made before the clock was set
-- back. They count as made now: the rate is kept, and they are forgotten in time.
local function straighten_rate()
  for _, bucket in ipairs(redis.call('HKEYS', key.rate)) do
    if tonumber(bucket) > second then
      redis.call('HINCRBY', key.rate, int(second), redis.call('HGET', key.rate, bucket))
      redis.call('HDEL', key.rate, bucket)
    end
  end
end

-- Counts turns that were claimed or not. Beyond the turns of some minutes the older ones
-- weigh less and less: what is told of them follows the crowd, and not its bursts.
local function learn_turns(claimed, unclaimed)
  if claimed > 0 then count('turns_claimed', claimed) end
  if unclaimed > 0 then count('turns_unclaimed', unclaimed) end
  local all = (show.turns_claimed or 0) + (show.turns_unclaimed or 0)
  if all <= math.max(256, 4 * show.rate) then return end
  for _, field in ipairs({'turns_claimed', 'turns_unclaimed'}) do
    count(field, -math.floor((show[field] or 0) / 2))
  end
end

-- The share of turns that nobody claims. A few turns tell little: the first 20 are
-- taken as claimed.
local function no_show()
  local unclaimed = show.turns_unclaimed or 0
  return unclaimed / ((show.turns_claimed or 0) + unclaimed + 20)
end

-- Turns that may be given in a minute: the rate, and where the show allows it so many
-- more as make up for those that nobody will claim.
local function allowance()
  local most = show.rate * (100 + (show.over_admit or 0)) / 100
  return math.floor(math.min(most, show.rate / (1 - no_show())))
end

-- How many may come in at this instant. An operator may let people in while paused.
local function room(by_operator)
  local stands = phase()
  if stands ~= 'OPEN' and not (by_operator and stands == 'PAUSED') then return 0 end
  return math.max(0, math.min(show.max_active - inside(), allowance() - admitted_lately()))
end

local TRAIL = 240 -- bytes kept of a person's past

-- Writes down what became of somebody, for whoever explains it later.
local function note(request, entry)
  local trail = (redis.call('HGET', key.trail, request) or '') .. entry .. ';'
  while #trail > TRAIL do trail = string.match(trail, '^[^;]*;(.*)$') end
  redis.call('HSET', key.trail, request, trail)
end

-- How somebody's last place ended, which is of the past from now on; nil: there was none.
local function forget_end(request)
  local past = redis.call('HGET', key.ended, request)
  if not past then return nil end
  redis.call('HDEL', key.ended, request)
  note(request, past)
  return past
end

-- Whether somebody's present turn has been extended.
local function was_extended(request)
  return string.match(redis.call('HGET', key.trail, request) or '', 'extended:%d+;$') ~= nil
end

-- Those of some silent people who wait. Whoever has a turn is in presence still and keeps
-- it until its deadline: taking out each at each admission would be most of its work.
local function those_waiting(silent)
  local waiting, idle = {}, {}
  for i, score in ipairs(read_many('ZMSCORE', key.waiting, silent)) do
    local list = score and waiting or idle
    list[#list + 1] = silent[i]
  end
  many('ZREM', key.presence, idle)
  return waiting
end

-- Parts people who wait by their last contact: later than an instant, and not.
local function part_by_contact(people, instant)
  local heard, silent = {}, {}
  for i, contact in ipairs(read_many('ZMSCORE', key.presence, people)) do
    local list = contact and tonumber(contact) <= instant and silent or heard
    list[#list + 1] = people[i]
  end
  return heard, silent
end

-- Redis keeps up to 32 arguments of a script's command for its next one. Longer commands
-- have it allocate two objects a person, which costs more than the command.
local TURNS = 15

-- Gives a turn to people who are no longer in the line.
local function admit(requests)
  if #requests == 0 then return end
  local turns, deadline = {}, int(now + show.turn_ms)
  for i = 1, 2 * TURNS, 2 do turns[i] = deadline end
  for from = 1, #requests, TURNS do
    local last = math.min(from + TURNS - 1, #requests)
    for i = from, last do turns[2 * (i - from + 1)] = requests[i] end
    redis.call('ZADD', key.active, unpack(turns, 1, 2 * (last - from + 1)))
  end
  lately = admitted_lately() + #requests
  redis.call('HINCRBY', key.rate, int(second), #requests)
  many('HDEL', key.rate, outdated)
  outdated = {}
end

-- Whether somebody is inside with a claimed turn, and until when.
local function session_of(request)
  local deadline = score_of(key.active, request)
  if deadline and not over(deadline) and redis.call('SISMEMBER', key.claimed, request) == 1 then return deadline end
end

-- Why somebody may not take, extend or book seats now; nil when they may. The one
-- judge of all three, so that what is refused at one of them is refused at all.
local function refusal(request)
  local stands = phase()
  if stands == 'CLOSED' then return {'CLOSED'} end
  if stands == 'SCHEDULED' or stands == 'PREQUEUE' then return {'NOT_OPEN', show.opens_at} end
  if not session_of(request) then return {'NOT_ADMITTED'} end
end

local WAITING_AS = {SCHEDULED = 'PREQUEUE', PREQUEUE = 'PREQUEUE', SOLD_OUT = 'SOLD_OUT', CLOSED = 'CLOSED'}

-- Where a person stands: status, rank (0: none to tell), score, deadline in ms, and of
-- whoever waits at a show with lanes how many wait in theirs.
local function place_of(request)
  local deadline = score_of(key.active, request)
  if deadline then
    if over(deadline) then return {'EXPIRED', 0, 0, 0} end
    if redis.call('SISMEMBER', key.claimed, request) == 1 then return {'ACTIVE', 0, 0, deadline} end
    if phase() == 'CLOSED' then return {'CLOSED', 0, 0, 0} end -- a turn that nobody took in time
    return {'ADMITTED', 0, 0, deadline}
  end
  local score = score_of(key.waiting, request)
  if score then
    local status = WAITING_AS[phase()]
    local lane = lane_of(score)
    local crowd = show.lanes and waiting_in(lane) or nil
    if status then return {status, 0, score, 0, crowd} end
    return {'WAITING', redis.call('ZRANK', key.waiting, request) + 1 - before(lane), score, 0, crowd}
  end
  local ended = redis.call('HGET', key.ended, request)
  if ended then return {string.match(ended, '^%u+'), 0, 0, 0} end
  return {'NONE', 0, 0, 0}
end

-- Weight and number of people of each line of a show with lanes.
local function lines()
  local list = {}
  for lane = 0, show.lanes do
    list[#list + 1] = show['weight_' .. lane]
    list[#list + 1] = waiting_in(lane)
  end
  return list
end

-- The show's live numbers, in the order that reply.go reads. A session that is
-- over counts as ended, swept or not, so waiting + active + ended = joined.
local function numbers(held)
  local active = inside()
  local unswept = redis.call('ZCARD', key.active) - active
  return {redis.call('ZCARD', key.waiting), active, show.max_active, show.rate, admitted_lately(),
    show.joined, show.ended + unswept, show.sold, held, show.capacity, phase(),
    show.epoch, show.version, show.seat_version, now,
    math.floor(1e6 * no_show()), show.per_buyer or 0, show.lanes and lines() or nil}
end
