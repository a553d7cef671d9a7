-- Seats and holds.
--
-- A seat's value is h:HOLD:REQUEST:DEADLINE (held), b:HOLD:REQUEST:BOOKING (being
-- booked, cannot lapse) or s:BOOKING (sold); no value, or a held one whose deadline
-- is over, is free: for the map, the limit, a new hold and availability alike.

-- Kind (nil: free), hold, request, and the deadline or booking of a value.
local function read_seat(value)
  if not value then return nil end
  local kind, first, request, last = unpack(split(value, ':'))
  if kind == 's' then return kind, nil, nil, first end
  if kind == 'h' and over(tonumber(last)) then return nil end
  return kind, first, request, last
end

-- The hold of a seat's value.
local function holder(value) return split(value, ':', 3)[2] end

-- A hold is REQUEST:STATE:DEADLINE:CEILING:BOOKING:BEGUN:seat,seat. State h: plain;
-- b: being booked; p: the same and the command is on its stream; x: lapsed, without
-- seats, kept a while so that its owner is told "expired" and not "unknown".
local function parse_hold(id, value)
  if not value then return nil end
  local request, state, deadline, ceiling, booking, begun, seats = unpack(split(value, ':', 7))
  return {id = id, request = request, state = state, deadline = tonumber(deadline), ceiling = tonumber(ceiling),
    booking = booking, begun = tonumber(begun), seats = split(seats, ',')}
end

local function read_hold(id) return parse_hold(id, redis.call('HGET', key.holds, id)) end

-- Those of the holds that are there.
local function read_holds(ids)
  local holds = {}
  for i, value in ipairs(read_many('HMGET', key.holds, ids)) do holds[#holds + 1] = parse_hold(ids[i], value) end
  return holds
end

local function hold_value(hold)
  return table.concat({hold.request, hold.state, int(hold.deadline), int(hold.ceiling), hold.booking, int(hold.begun),
    table.concat(hold.seats, ',')}, ':')
end

local function write_hold(hold) redis.call('HSET', key.holds, hold.id, hold_value(hold)) end

-- Whether its seats are its own: a plain hold until its deadline, a begun one always.
local function lives(hold)
  return hold.state == 'b' or hold.state == 'p' or hold.state == 'h' and not over(hold.deadline)
end

-- All changes of a step share one seat version, unless the step starts another.
local changes, stamp = {}, nil
local STATES = {h = 'HELD', b = 'HELD', s = 'SOLD'}
local TALLY = {h = 'held', b = 'held', s = 'sold'}

-- Changes seats for everybody to see; a value that is false frees its seat. Whoever has
-- read just now what stands there passes it on.
local function put_seats(seats, values, stand)
  if #seats == 0 then return end
  stamp = stamp or count('seat_version', 1)
  stand = stand or read_many('HMGET', key.seats, seats)
  local version, more = int(stamp), {held = 0, sold = 0}
  local latest, set, free, log, sets, told = {}, {}, {}, {}, 0, #changes
  for i, seat in ipairs(seats) do
    local value, before = values[i], latest[seat]
    if before == nil then before = stand[i] end
    latest[seat] = value
    local kind, was = value and part(value, 1, 1), before and TALLY[part(before, 1, 1)]
    if was then more[was] = more[was] - 1 end
    if value then
      local becomes = TALLY[kind]
      more[becomes] = more[becomes] + 1
      set[sets + 1], set[sets + 2] = seat, value
      sets = sets + 2
    else
      free[#free + 1] = seat
    end
    log[2 * i - 1], log[2 * i] = version, seat
    changes[told + 1], changes[told + 2] = seat, STATES[kind] or 'FREE'
    told = told + 2
  end
  many('HSET', key.seats, set)
  many('HDEL', key.seats, free)
  many('ZADD', key.seat_log, log)
  if more.held ~= 0 then count('held', more.held) end
  if more.sold ~= 0 then count('sold', more.sold) end
end

local function free_seats(seats, stand)
  local values = {}
  for i = 1, #seats do values[i] = false end
  put_seats(seats, values, stand)
end

local function mark_of(hold)
  local plain = hold.state == 'h'
  return table.concat({plain and 'h' or 'b', hold.id, hold.request, plain and int(hold.deadline) or hold.booking}, ':')
end

-- Writes a hold's state or deadline to its seats, which nobody else can see.
local function mark_seats(hold)
  local values, mark = {}, mark_of(hold)
  for _, seat in ipairs(hold.seats) do values[#values + 1], values[#values + 2] = seat, mark end
  many('HSET', key.seats, values)
end

-- Puts a new plain hold on seats that are free.
local function keep(hold)
  local list, mark, marks = redis.call('HGET', key.owners, hold.request), mark_of(hold), {}
  for i = 1, #hold.seats do marks[i] = mark end
  put_seats(hold.seats, marks)
  write_hold(hold)
  redis.call('ZADD', key.deadlines, int(hold.deadline), hold.id)
  redis.call('HSET', key.owners, hold.request, list and list .. ',' .. hold.id or hold.id)
end

-- People whose last hold this step has taken away: no need to look for more of theirs.
local without_holds = {}

-- Takes holds off the lists of their owners.
local function disown(holds)
  local owners, left, keep_list, drop = {}, {}, {}, {}
  for i, hold in ipairs(holds) do owners[i] = hold.request end
  for i, list in ipairs(read_many('HMGET', key.owners, owners)) do
    local owner, gone = owners[i], holds[i].id
    list = left[owner] or list or ''
    if list == gone then -- as good as always
      left[owner] = ''
    else
      local rest = {}
      for _, id in ipairs(split(list, ',')) do
        if id ~= gone then rest[#rest + 1] = id end
      end
      left[owner] = table.concat(rest, ',')
    end
  end
  for owner, list in pairs(left) do
    if list == '' then
      drop[#drop + 1] = owner
      without_holds[owner] = true
    else
      keep_list[#keep_list + 1], keep_list[#keep_list + 2] = owner, list
    end
  end
  many('HSET', key.owners, keep_list)
  many('HDEL', key.owners, drop)
end

-- Frees what still is the holds' and forgets them.
local function release(holds)
  local ids, timed, begun, marked, of, seats, stand = {}, {}, {}, {}, {}, {}, {}
  for i, hold in ipairs(holds) do
    ids[i] = hold.id
    local list = (hold.state == 'b' or hold.state == 'p') and begun or timed
    list[#list + 1] = hold.id
    for _, seat in ipairs(hold.seats) do marked[#marked + 1], of[#of + 1] = seat, hold.id end
  end
  for i, value in ipairs(read_many('HMGET', key.seats, marked)) do
    if value and holder(value) == of[i] then seats[#seats + 1], stand[#stand + 1] = marked[i], value end
  end
  free_seats(seats, stand)
  many('HDEL', key.holds, ids)
  many('ZREM', key.deadlines, timed)
  many('ZREM', key.begun, begun)
  disown(holds)
end

local TOMBSTONE = 3600 * 1000

-- Frees holds that ran out or lost a seat, and remembers that they were there.
local function lapse(holds)
  release(holds)
  local stones, deadlines = {}, {}
  for _, hold in ipairs(holds) do
    if hold.state ~= 'x' then
      hold.state, hold.seats = 'x', {}
      stones[#stones + 1], stones[#stones + 2] = hold.id, hold_value(hold)
      deadlines[#deadlines + 1], deadlines[#deadlines + 2] = int(now + TOMBSTONE), hold.id
    end
  end
  many('HSET', key.holds, stones)
  many('ZADD', key.deadlines, deadlines)
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
  for _, hold in ipairs(read_holds(split(redis.call('HGET', key.owners, request) or '', ','))) do
    if lives(hold) then
      holds[#holds + 1] = hold
      seats = seats + #hold.seats
    end
  end
  return holds, seats
end

-- Lets go of people's plain holds; what is being booked stays.
local function release_holds_of(requests)
  local owners, ids, owner, plain = {}, {}, {}, {}
  for _, request in ipairs(requests) do
    if not without_holds[request] then owners[#owners + 1] = request end
  end
  for i, list in ipairs(read_many('HMGET', key.owners, owners)) do
    for _, id in ipairs(split(list or '', ',')) do ids[#ids + 1], owner[#owner + 1] = id, owners[i] end
  end
  for i, value in ipairs(read_many('HMGET', key.holds, ids)) do
    if value and starts_with(value, owner[i] .. ':h:') then plain[#plain + 1] = parse_hold(ids[i], value) end
  end
  lapse(plain)
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
  for _, hold in ipairs(read_holds(lapsed_holds())) do held = held - #hold.seats end
  return held
end
