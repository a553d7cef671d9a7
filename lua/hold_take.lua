-- Keeps seats for one person, all or nothing: the first candidate whose seats are all
-- free. The same hold id again answers the hold that is there.
-- USES    clock show seats admission
-- READS   active claimed bought
-- WRITES  show seats holds deadlines begun owners seat_log
-- ARGV    1 clock offset in ms, 2 request, 3 hold, 4 number of candidates, then for each:
--         number of seats, seats ...
-- RETURNS OK, deadline, ceiling, now, seat version, seats ...
--         CLOSED, NOT_ADMITTED, SOLD_OUT, NOT_OPEN with the opening in ms: no holds now
--         LIMIT, limit, used: too many for one person
--         CONFLICT, seats ...: these of the only candidate are not free
--         NO_BLOCK: no candidate is free
--         NOT_LOADED: the show is not there

local request, id, candidates = ARGV[2], ARGV[3], tonumber(ARGV[4])

local function answer(hold)
  return {'OK', hold.deadline, hold.ceiling, now, show.seat_version, unpack(hold.seats)}
end

local known = read_hold(id)
if known and known.request == request and lives(known) then return answer(known) end
local refused = refusal(request)
if refused then return refused end
if sold_out() then return {'SOLD_OUT'} end

local _, used = holds_of(request)
used = used + tonumber(redis.call('HGET', key.bought, request) or 0)
local at, chosen, conflicts, lapsed, fits = 5, nil, {}, {}, candidates == 0
for _ = 1, candidates do
  local wanted = {unpack(ARGV, at + 1, at + tonumber(ARGV[at]))}
  at = at + #wanted + 1
  if used + #wanted <= show.seat_limit then
    fits, conflicts, lapsed = true, {}, {}
    for i, value in ipairs(redis.call('HMGET', key.seats, unpack(wanted))) do
      if read_seat(value) then conflicts[#conflicts + 1] = wanted[i] end
      if value then lapsed[#lapsed + 1] = holder(value) end
    end
    if #conflicts == 0 then
      chosen = wanted
      break
    end
  end
end
if not fits then return {'LIMIT', show.seat_limit, used} end
if not chosen and candidates == 1 then return {'CONFLICT', unpack(conflicts)} end
if not chosen then return {'NO_BLOCK'} end

-- Lapsed holds in the way go as a whole, as a change of their own.
lapse(read_holds(lapsed))
stamp = nil
local hold = {id = id, request = request, state = 'h', deadline = now + show.hold_ms, ceiling = now + show.ceiling_ms,
  booking = '', begun = 0, seats = chosen}
keep(hold)
bump()
return answer(hold)
