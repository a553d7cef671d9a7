-- Seats and holds.
--
-- A seat's value is h:HOLD:REQUEST:DEADLINE (held), b:HOLD:REQUEST:BOOKING (being
-- booked, cannot lapse) or s:BOOKING (sold); no value, or a held one whose deadline
-- is over, is free: for the map, the limit, a new hold and availability alike.

-- Kind (nil: free), hold, request, and the deadline or booking of a value.
local function read_seat(value)
  if not value then return nil end
  local kind, first, request, last = string.match(value, '^(%l):([^:]*):?([^:]*):?([^:]*)$')
  if kind == 's' then return kind, nil, nil, first end
  if kind == 'h' and over(tonumber(last)) then return nil end
  return kind, first, request, last
end

-- A hold is REQUEST:STATE:DEADLINE:CEILING:BOOKING:BEGUN:seat,seat. State h: plain;
-- b: being booked; p: the same and the command is on its stream; x: lapsed, without
-- seats, kept a while so that its owner is told "expired" and not "unknown".
local function read_hold(id)
  local value = redis.call('HGET', key.holds, id)
  if not value then return nil end
  local request, state, deadline, ceiling, booking, begun, seats =
    string.match(value, '^([^:]*):(%l):(%d+):(%d+):([^:]*):(%d+):(.*)$')
  return {id = id, request = request, state = state, deadline = tonumber(deadline), ceiling = tonumber(ceiling),
    booking = booking, begun = tonumber(begun), seats = split(seats)}
end

local function write_hold(hold)
  redis.call('HSET', key.holds, hold.id, table.concat({hold.request, hold.state, int(hold.deadline),
    int(hold.ceiling), hold.booking, int(hold.begun), table.concat(hold.seats, ',')}, ':'))
end

-- Whether its seats are its own: a plain hold until its deadline, a begun one always.
local function lives(hold)
  return hold.state == 'b' or hold.state == 'p' or hold.state == 'h' and not over(hold.deadline)
end

-- All changes of a step share one seat version, unless the step starts another.
local changes, stamp = {}, nil
local STATES = {h = 'HELD', b = 'HELD', s = 'SOLD'}
local TALLY = {h = 'held', b = 'held', s = 'sold'}

-- Changes a seat for everybody to see; value false frees it.
local function put_seat(seat, value)
  local before = TALLY[string.sub(redis.call('HGET', key.seats, seat) or '', 1, 1)]
  local kind = string.sub(value or '', 1, 1)
  if value then redis.call('HSET', key.seats, seat, value) else redis.call('HDEL', key.seats, seat) end
  if before ~= TALLY[kind] then
    if before then count(before, -1) end
    if TALLY[kind] then count(TALLY[kind], 1) end
  end
  stamp = stamp or count('seat_version', 1)
  redis.call('ZADD', key.seat_log, int(stamp), seat)
  changes[#changes + 1] = seat
  changes[#changes + 1] = STATES[kind] or 'FREE'
end

local function mark_of(hold)
  local plain = hold.state == 'h'
  return table.concat({plain and 'h' or 'b', hold.id, hold.request, plain and int(hold.deadline) or hold.booking}, ':')
end

-- Writes a hold's state or deadline to its seats, which nobody else can see.
local function mark_seats(hold)
  local values = {}
  for _, seat in ipairs(hold.seats) do
    values[#values + 1] = seat
    values[#values + 1] = mark_of(hold)
  end
  many('HSET', key.seats, values)
end

-- Puts a new plain hold on seats that are free.
local function keep(hold)
  local list = redis.call('HGET', key.owners, hold.request)
  for _, seat in ipairs(hold.seats) do put_seat(seat, mark_of(hold)) end
  write_hold(hold)
  redis.call('ZADD', key.deadlines, int(hold.deadline), hold.id)
  redis.call('HSET', key.owners, hold.request, list and list .. ',' .. hold.id or hold.id)
end

local function disown(hold)
  local rest = {}
  for _, id in ipairs(split(redis.call('HGET', key.owners, hold.request) or '')) do
    if id ~= hold.id then rest[#rest + 1] = id end
  end
  if #rest > 0 then
    redis.call('HSET', key.owners, hold.request, table.concat(rest, ','))
  else
    redis.call('HDEL', key.owners, hold.request)
  end
end

-- Frees what still is the hold's and forgets it.
local function release(hold)
  for _, seat in ipairs(hold.seats) do
    local value = redis.call('HGET', key.seats, seat)
    if value and string.match(value, '^[hb]:([^:]*)') == hold.id then put_seat(seat, false) end
  end
  redis.call('HDEL', key.holds, hold.id)
  redis.call('ZREM', key.deadlines, hold.id)
  redis.call('ZREM', key.begun, hold.id)
  disown(hold)
end

local TOMBSTONE = 3600 * 1000

-- Frees a hold that ran out or lost a seat, and remembers that it was there.
local function lapse(hold)
  release(hold)
  if hold.state == 'x' then return end
  hold.state, hold.seats = 'x', {}
  write_hold(hold)
  redis.call('ZADD', key.deadlines, int(now + TOMBSTONE), hold.id)
end

-- A hold that its owner asks for by id, or why it cannot be changed; one that is
-- being booked comes with both.
local function own_hold(request, id)
  local hold = read_hold(id)
  if not hold or hold.request ~= request then return nil, {'HOLD_NOT_FOUND'} end
  if not lives(hold) then return nil, {'HOLD_EXPIRED'} end
  if hold.state ~= 'h' then return hold, {'IN_PROGRESS'} end
  return hold
end

-- Live holds of a person and how many seats are in them.
local function holds_of(request)
  local holds, seats = {}, 0
  for _, id in ipairs(split(redis.call('HGET', key.owners, request) or '')) do
    local hold = read_hold(id)
    if hold and lives(hold) then
      holds[#holds + 1] = hold
      seats = seats + #hold.seats
    end
  end
  return holds, seats
end

-- Lets go of people's plain holds; what is being booked stays.
local function release_holds_of(requests)
  for _, list in ipairs(read_many('HMGET', key.owners, requests)) do
    for _, id in ipairs(split(list or '')) do
      local hold = read_hold(id)
      if hold and hold.state == 'h' then lapse(hold) end
    end
  end
end

-- A seat's public state, and its hold when that is the viewer's own, else ''.
local function seen_by(viewer, value)
  local kind, hold, request = read_seat(value)
  return STATES[kind] or 'FREE', request == viewer and hold or ''
end

local function lapsed_holds()
  return redis.call('ZRANGEBYSCORE', key.deadlines, '-inf', int(now))
end

-- Seats in live holds or being booked.
local function held_now()
  local held = show.held
  for _, id in ipairs(lapsed_holds()) do held = held - #read_hold(id).seats end
  return held
end
