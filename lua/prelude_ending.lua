-- The end of places; uses admission and seats.

-- The end of a session is remembered for this long after its deadline: until then a
-- shop with a slow clock may take the pass for good.
local REMEMBERED = 2 * 60 * 1000

-- Makes it known that sessions end, so that their passes count no more. A turn has none.
local function revoke(requests, claimed)
  local sessions = {}
  for i, deadline in ipairs(read_many('ZMSCORE', key.active, requests)) do
    if deadline and claimed[i] == 1 then
      sessions[#sessions + 1] = table.concat({requests[i], int(tonumber(deadline)), int(show.epoch), int(now)}, ':')
    end
  end
  if #sessions == 0 then return end

  local entries, last = {}, count('revoked', #sessions)
  for i, session in ipairs(sessions) do
    entries[#entries + 1] = int(last - #sessions + i)
    entries[#entries + 1] = session
  end
  many('ZADD', key.revoked, entries)

  local old = 0
  for _, session in ipairs(redis.call('ZRANGE', key.revoked, 0, 2 * #sessions)) do
    if not over(tonumber(string.match(session, ':(%d+):')) + REMEMBERED) then break end
    old = old + 1
  end
  if old > 0 then redis.call('ZREMRANGEBYRANK', key.revoked, 0, old - 1) end
end

-- Ends places, in the line or inside, with a final status, why, and their plain holds.
-- Without a reason they are turns and sessions that have run out.
local function finish(requests, status, why)
  local claimed = read_many('SMISMEMBER', key.claimed, requests)
  revoke(requests, claimed)
  local ends, unclaimed = {}, 0
  for i, request in ipairs(requests) do
    if not why and claimed[i] ~= 1 then unclaimed = unclaimed + 1 end
    ends[#ends + 1] = request
    ends[#ends + 1] = table.concat({status, int(now), why or claimed[i] == 1 and 'session' or 'turn'}, ':')
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
