-- Whose turn it is where a show has lanes; uses admission.
--
-- Lanes share turns by weight as if each moved on at its share of the rate, all at once.
-- due is how many turns' time from now a lane's next turn begins in that picture, and it
-- lasts 1 / weight. Of those that have begun comes the one that is over first: so no
-- lane is ever a whole turn behind its share, or ahead of it. A lane where nobody waits
-- saves nothing up, and what it does not use is shared out. Package internal/simulate
-- computes the same in the same order.
local SLACK = 1e-9 -- for what sums of fractions lose
local MOST = 200   -- turns shared out by one step: each costs a look at every lane

-- weight, due and left (people) by lane, the ordinary line first.
local function read_lanes()
  local weight, due, left = {}, {}, {}
  for lane = 1, show.lanes + 1 do
    weight[lane], due[lane], left[lane] = show['weight_' .. lane - 1], show['due_' .. lane - 1] or 0, waiting_in(lane - 1)
  end
  return weight, due, left
end

-- Whose turn is next, which is taken; nil when nobody waits.
local function next_lane(weight, due, left)
  local total, first = 0, nil
  for lane = 1, #weight do
    if left[lane] > 0 then
      total = total + weight[lane]
      if not first or due[lane] < first then first = due[lane] end
    end
  end
  if not first then return nil end
  local chosen, over_at
  for lane = 1, #weight do
    if first > 0 then due[lane] = due[lane] - first end -- nothing has begun: time goes on until it has
    if left[lane] > 0 and due[lane] <= SLACK then
      local ends = due[lane] + 1 / weight[lane]
      if not chosen or ends < over_at - SLACK then chosen, over_at = lane, ends end
    end
  end
  due[chosen], left[chosen] = over_at, left[chosen] - 1
  local passed = 1 / total
  for lane = 1, #weight do due[lane] = due[lane] - passed end
  return chosen
end

-- Takes up to a number of people out of the lines, in the order of their turns.
local function take_by_turns(most)
  local weight, due, left = read_lanes()
  local order, turns, lines, taken = {}, {}, {}, {}
  for nth = 1, math.min(most, MOST) do
    local lane = next_lane(weight, due, left)
    if not lane then break end
    order[nth], turns[lane] = lane, (turns[lane] or 0) + 1
  end
  for lane = 1, #weight do
    if left[lane] == 0 then due[lane] = math.max(due[lane], 0) end
    redis.call('HSET', key.show, 'due_' .. lane - 1, string.format('%.17g', due[lane]))
    if turns[lane] then
      local front = before(lane - 1)
      lines[lane] = redis.call('ZRANGE', key.waiting, front, front + turns[lane] - 1)
      redis.call('ZREMRANGEBYRANK', key.waiting, front, front + turns[lane] - 1)
    end
    turns[lane] = 0
  end
  for nth, lane in ipairs(order) do
    turns[lane] = turns[lane] + 1
    taken[nth] = lines[lane][turns[lane]]
  end
  return taken
end
