-- Changes the seats of a person's own hold in one step. Deadline and ceiling stay.
-- USES    clock show seats admission
-- READS   active claimed bought
-- WRITES  show seats holds deadlines begun owners seat_log
-- ARGV    1 clock offset in ms, 2 request, 3 hold, then seats
-- RETURNS OK, deadline, ceiling, now, seat version, seats ...
--         CLOSED, NOT_ADMITTED, NOT_OPEN with the opening in ms: no holds now
--         HOLD_NOT_FOUND: unknown or another's
--         HOLD_EXPIRED: ran out
--         IN_PROGRESS: it is being booked
--         LIMIT, limit, used: too many for one person
--         CONFLICT, seats ...: these are not free
--         NOT_LOADED: the show is not there

local request, id = ARGV[2], ARGV[3]
local hold, problem = own_hold(request, id)
local refused = problem or refusal(request)
if refused then return refused end

local wanted = {unpack(ARGV, 4)}
local _, used = holds_of(request)
used = used - #hold.seats + tonumber(redis.call('HGET', key.bought, request) or 0)
if used + #wanted > show.seat_limit then return {'LIMIT', show.seat_limit, used} end

local conflicts, lapsed, wants = {}, {}, {}
for i, value in ipairs(redis.call('HMGET', key.seats, unpack(wanted))) do
  local kind, holder = read_seat(value)
  if kind and holder ~= id then conflicts[#conflicts + 1] = wanted[i] end
  if value and not kind then lapsed[#lapsed + 1] = holder(value) end
  wants[wanted[i]] = true
end
if #conflicts > 0 then return {'CONFLICT', unpack(conflicts)} end

lapse(read_holds(lapsed))
stamp = nil
local has, seats, values = {}, {}, {}
for _, seat in ipairs(hold.seats) do
  has[seat] = true
  if not wants[seat] then seats[#seats + 1], values[#values + 1] = seat, false end
end
hold.seats = wanted
for _, seat in ipairs(wanted) do
  if not has[seat] then seats[#seats + 1], values[#values + 1] = seat, mark_of(hold) end
end
put_seats(seats, values)
write_hold(hold)
bump()
return {'OK', hold.deadline, hold.ceiling, now, show.seat_version, unpack(hold.seats)}
