-- Whose turn it is where a show has lanes; uses admission.
--
-- Lanes share turns by weight as if each moved on at its share of the rate, all at once.
-- lane.due is how many turns' time from now a lane's next turn begins in that picture, and
-- it lasts 1 / weight. Of those that have begun comes the one that is over first: so no
-- lane is ever a whole turn behind its share, or ahead of it. A lane where nobody waits
-- saves nothing up, and what it does not use is shared out. domain and internal/simulate
-- compute the same in the same order.
local SLACK = 1e-9 -- for what sums of fractions lose

local function read_lanes()
  local lanes = {}
  for number = 0, show.lanes do
    lanes[number + 1] = {weight = show['weight_' .. number], due = show['due_' .. number] or 0, left = waiting_in(number), turns = 0}
  end
  return lanes
end

-- The number of the lane whose turn is next; nil when nobody waits.
local function next_lane(lanes)
  local total, first = 0, nil
  for _, lane in ipairs(lanes) do
    if lane.left > 0 then
      total = total + lane.weight
      first = math.min(first or lane.due, lane.due)
    end
  end
  if not first then return nil end
  local chosen, over_at
  for number, lane in ipairs(lanes) do
    if first > 0 then lane.due = lane.due - first end -- nothing has begun: time goes on until it has
    local ends = lane.due + 1 / lane.weight
    if lane.left > 0 and lane.due <= SLACK and (not chosen or ends < over_at - SLACK) then
      chosen, over_at = number, ends
    end
  end
  lanes[chosen].due, lanes[chosen].left = over_at, lanes[chosen].left - 1
  for _, lane in ipairs(lanes) do lane.due = lane.due - 1 / total end
  return chosen
end

-- Takes up to a number of people out of the lines, in the order of their turns.
local function take_by_turns(most)
  local lanes, order, lines, taken = read_lanes(), {}, {}, {}
  while #order < most do
    local number = next_lane(lanes)
    if not number then break end
    order[#order + 1] = number
    lanes[number].turns = lanes[number].turns + 1
  end
  for number, lane in ipairs(lanes) do
    if lane.left == 0 then lane.due = math.max(lane.due, 0) end
    redis.call('HSET', key.show, 'due_' .. (number - 1), string.format('%.17g', lane.due))
    local from, to = stretch(number - 1)
    lines[number] = redis.call('ZRANGEBYSCORE', key.waiting, from, to, 'LIMIT', 0, lane.turns)
    lane.turns = 0
  end
  for i, number in ipairs(order) do
    lanes[number].turns = lanes[number].turns + 1
    taken[i] = lines[number][lanes[number].turns]
  end
  many('ZREM', key.waiting, taken)
  return taken
end
