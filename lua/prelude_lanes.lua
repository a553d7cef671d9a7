-- Whose turn it is where a show has lanes; uses admission.
--
-- Lanes share turns by weight as if each moved on at its share of the rate, all at once.
-- due is how many turns' time from now a lane's next turn begins in that picture, and it
-- lasts 1 / weight. Of those that have begun comes the one that is over first: so no
-- lane is ever a whole turn behind its share, or ahead of it. A lane where nobody waits
-- saves nothing up, and what it does not use is shared out. Package internal/simulate
-- computes the same in the same order.
local SLACK = 1e-9 -- for what sums of fractions lose
local MOST = 250   -- turns shared out by one step: each costs a look at every lane

-- weight, due and left (people) by lane, the ordinary line first.
local function read_lanes()
  local weight, due, left = {}, {}, {}
  for lane = 1, show.lanes + 1 do
    weight[lane], due[lane], left[lane] = show['weight_' .. lane - 1], show['due_' .. lane - 1] or 0, waiting_in(lane - 1)
  end
  return weight, due, left
end

-- Whose the next turns are, which are taken, up to a number while somebody waits.
local function share_out(weight, due, left, most)
  local order, lasts, total, first = {}, {}, 0, nil
  for lane = 1, #weight do
    lasts[lane] = 1 / weight[lane]
    if left[lane] > 0 then
      total = total + weight[lane]
      if not first or due[lane] < first then first = due[lane] end
    end
  end
  for nth = 1, most do
    if not first then break end
    local chosen, over_at
    for lane = 1, #weight do
      local at = due[lane]
      if first > 0 then -- nothing has begun: time goes on until it has
        at = at - first
        due[lane] = at
      end
      if at <= SLACK and left[lane] > 0 then
        local ends = at + lasts[lane]
        if not chosen or ends < over_at - SLACK then chosen, over_at = lane, ends end
      end
    end
    order[nth], due[chosen], left[chosen] = chosen, over_at, left[chosen] - 1

    local passed, crowd = 1 / total, 0
    first = nil
    for lane = 1, #weight do
      local at = due[lane] - passed
      due[lane] = at
      if left[lane] > 0 then
        crowd = crowd + weight[lane]
        if not first or at < first then first = at end
      end
    end
    total = crowd
  end
  return order
end

-- Takes up to a number of people out of the lines, in the order of their turns.
local function take_by_turns(most)
  local weight, due, left = read_lanes()
  local order, turns, lines, taken = share_out(weight, due, left, math.min(most, MOST)), {}, {}, {}
  for _, lane in ipairs(order) do turns[lane] = (turns[lane] or 0) + 1 end
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
