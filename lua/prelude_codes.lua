-- Join codes with a number of uses. Somebody who has used one may use it again: who comes
-- back is the same person.

-- What a join brings: SCORE, or SCORE:CODE:USES.
local function read_drawn(text)
  if tonumber(text) then return text end
  local drawn, code, uses = string.match(text, '^(%d+):([^:]*):(%d+)$')
  return drawn, code, tonumber(uses)
end

local function may_use(code, uses, request)
  if not code or redis.call('HEXISTS', key.codes, code .. ':' .. request) == 1 then return true end
  return tonumber(redis.call('HGET', key.codes, code) or 0) < uses
end

local function use(code, request)
  if code and redis.call('HSETNX', key.codes, code .. ':' .. request, 1) == 1 then
    redis.call('HINCRBY', key.codes, code, 1)
  end
end
