-- The show: its settings and counters, all numbers. A show that is not there ends
-- the step before it has done anything.

local show = {}
local stored = redis.call('HGETALL', key.show)
if #stored == 0 then return {'NOT_LOADED'} end
for i = 1, #stored, 2 do show[stored[i]] = tonumber(stored[i + 1]) end

local function count(field, by)
  show[field] = (show[field] or 0) + by
  redis.call('HINCRBY', key.show, field, int(by))
  return show[field]
end

-- Every step that changes what anybody may see ends with this.
local function bump() count('version', 1) end

local function sold_out() return show.capacity > 0 and show.sold >= show.capacity end

-- The same rules as domain.Show.Phase; a test compares the two.
local function phase()
  if show.closed == 1 or show.closes_at and now >= show.closes_at then return 'CLOSED' end
  if sold_out() then return 'SOLD_OUT' end
  if now < show.join_at then return 'SCHEDULED' end
  if now < show.opens_at then return 'PREQUEUE' end
  if show.paused == 1 then return 'PAUSED' end
  return 'OPEN'
end

-- Sets or removes the key that is polled for sold out, when that has changed
-- since before. Answers 1 or 0.
local function mark_sold_out(before)
  local after = sold_out()
  if after == before then return 0 end
  if after then redis.call('SET', key.sold_out, '1') else redis.call('DEL', key.sold_out) end
  return 1
end
