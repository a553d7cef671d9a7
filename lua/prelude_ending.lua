-- The end of places; uses admission and seats.

-- The end of a session is remembered for this long after its deadline: until then a
-- shop with a slow clock may take the pass for good.
local REMEMBERED = 2 * 60 * 1000

-- Makes it known that sessions end, so that their passes count no more. A turn has none.
local function revoke(requests, deadlines, claimed)
  local sessions, rest = {}, ':' .. int(show.epoch) .. ':' .. int(now)
  for i, deadline in ipairs(deadlines) do
    if deadline and claimed[i] == 1 then sessions[#sessions + 1] = requests[i] .. ':' .. deadline .. rest end
  end
  if #sessions == 0 then return end

  local entries, last = {}, count('revoked', #sessions)
  for i, session in ipairs(sessions) do
    entries[2 * i - 1], entries[2 * i] = int(last - #sessions + i), session
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
-- Without a reason they are turns and sessions that have run out. Whoever has read
-- their deadlines just now passes them on.
local function finish(requests, status, why, deadlines)
  deadlines = deadlines or read_many('ZMSCORE', key.active, requests)
  local claimed = read_many('SMISMEMBER', key.claimed, requests)
  revoke(requests, deadlines, claimed)
  local start = status .. ':' .. int(now) .. ':'
  local session, turn = start .. (why or 'session'), start .. (why or 'turn')
  local ends, in_line, present = {}, {}, {}
  for i, request in ipairs(requests) do
    local is_session = claimed[i] == 1
    ends[2 * i - 1], ends[2 * i] = request, is_session and session or turn
    -- Nobody is in the line and inside, and the claim of a turn ends presence.
    if not deadlines[i] then in_line[#in_line + 1] = request end
    if not is_session then present[#present + 1] = request end
  end
  if not why and #present > 0 then learn_turns(0, #present) end
  many('ZREM', key.waiting, in_line)
  many('ZREM', key.presence, present)
  many('ZREM', key.active, requests)
  many('SREM', key.claimed, requests)
  many('HSET', key.ended, ends)
  if #requests > 0 then count('ended', #requests) end
  release_holds_of(requests)
end
