-- The one clock of every deadline: the server's. ARGV[1] is added to it in ms;
-- it is 0 but in tests that travel in time instead of waiting.

-- A whole number as text. %d is several times as fast, and of 32 bits on some machines.
local format = string.format
local function int(n) return format(n < 2 ^ 31 and n > -2 ^ 31 and '%d' or '%.0f', n) end

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000) + tonumber(ARGV[1])

-- The one definition of expired, for turns, sessions, holds, tickets and notes.
local function over(deadline) return deadline <= now end

-- unpack has a limit, lower in the embedded server: values go 1,000 at a time.
local CHUNK = 1000

local function many(command, target, values)
  for i = 1, #values, CHUNK do
    redis.call(command, target, unpack(values, i, math.min(i + CHUNK - 1, #values)))
  end
end

-- The same for a command that answers one value a member; absent is false.
local function read_many(command, target, members)
  local found = {}
  if #members > 0 and #members <= CHUNK then return redis.call(command, target, unpack(members)) end
  for i = 1, #members, CHUNK do
    local part = redis.call(command, target, unpack(members, i, math.min(i + CHUNK - 1, #members)))
    for j = 1, #part do found[#found + 1] = part[j] end
  end
  return found
end

local find, part = string.find, string.sub

-- What stands between single characters; the last one of at most so many is the rest.
-- Nothing has no parts. Several times as fast as a pattern that captures them.
local function split(text, by, most)
  local parts, from, n = {}, 1, 1
  if text == '' then return parts end
  while n ~= most do
    local at = find(text, by, from, true)
    if not at then break end
    parts[n] = part(text, from, at - 1)
    from, n = at + 1, n + 1
  end
  parts[n] = part(text, from)
  return parts
end

local function starts_with(text, start) return part(text, 1, #start) == start end
local function ends_with(text, rest) return part(text, -#rest) == rest end
