-- The end of places; uses admission and seats.

-- The end of a session is remembered for this long after its deadline: until then a
-- shop with a slow clock may take the pass for good.
local REMEMBERED = 2 * 60 * 1000

-- Makes it known that sessions end, so that their passes count no more. A turn has none.
local function revoke(requests, claimed)
  local sessions, rest = {}, ':' .. int(show.epoch) .. ':' .. int(now)
  for i, deadline in ipairs(read_many('ZMSCORE', key.active, requests)) do
    if deadline and claimed[i] == 1 then sessions[#sessions + 1] = requests[i] .. ':' .. deadline .. rest end
  end
  if #sessions == 0 then return end

  local entries, last = {}, count('revoked', #sessions)
  for i, session in ipairs(sessions) do
    entries[#entries + 1] = int(last - #sessions + i)
    entries[#entries + 1] = session
  end
  many('ZADD', key.revoked, entries)

  local function is_old(session) return over(tonumber(split(session, ':', 3)[2]) + REMEMBERED) end
  local old = 0
  if is_old(redis.call('ZRANGE', key.revoked, 0, 0)[1]) then
    for _, session in ipairs(redis.call('ZRANGE', key.revoked, 0, 2 * #sessions)) do
      if not is_old(session) then break end
      old = old + 1
    end
    redis.call('ZREMRANGEBYRANK', key.revoked, 0, old - 1)
  end
end

-- Ends places, in the line or inside, with a final status, why, and their plain holds.
-- Without a reason they are turns and sessions that have run out.
local function finish(requests, status, why)
  local claimed = read_many('SMISMEMBER', key.claimed, requests)
  revoke(requests, claimed)
  local ends, unclaimed, start = {}, 0, status .. ':' .. int(now) .. ':'
  for i, request in ipairs(requests) do
    if not why and claimed[i] ~= 1 then unclaimed = unclaimed + 1 end
    ends[2 * i - 1], ends[2 * i] = request, start .. (why or claimed[i] == 1 and 'session' or 'turn')
  end
  if unclaimed > 0 then learn_turns(0, unclaimed) end
  many('ZREM', key.waiting, requests)
  many('ZREM', key.presence, requests)
  many('ZREM', key.active, requests)
  many('SREM', key.claimed, requests)
  many('HSET', key.ended, ends)
  if #requests > 0 then count('ended', #requests) end
  release_holds_of(requests)
end
