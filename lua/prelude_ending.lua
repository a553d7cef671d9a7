-- The end of places; uses admission and seats.

-- Ends places, in the line or inside, with a final status and their plain holds.
local function finish(requests, status)
  local ends = {}
  for _, request in ipairs(requests) do
    ends[#ends + 1] = request
    ends[#ends + 1] = status .. ':' .. int(now)
  end
  many('ZREM', key.waiting, requests)
  many('ZREM', key.presence, requests)
  many('ZREM', key.active, requests)
  many('SREM', key.claimed, requests)
  many('HSET', key.ended, ends)
  if #requests > 0 then count('ended', #requests) end
  release_holds_of(requests)
end
