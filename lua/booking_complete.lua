-- Makes confirmed bookings true in Redis, whatever is left of their holds: what SQL sold
-- is sold. Ends their persons' sessions. A booking settled before changes nothing.
-- All of them are one change: their seats have one version.
-- USES    clock show seats admission ending settlement
-- READS   rate
-- WRITES  show waiting active claimed presence ended revoked seats holds deadlines begun
--         owners bought seat_log sold_out settled
-- ARGV    1 clock offset in ms, then booking, hold, request, number of its seats, seats ...
-- RETURNS OK, numbers, sold out has changed (1 or 0), {seat, state ...}, then for each
--         booking: done (0: settled before), freed a slot (1 or 0)
--         NOT_LOADED: the show is not there

local all, ids, n, at = {}, {}, 0, 2
while ARGV[at] do
  local last = at + 3 + tonumber(ARGV[at + 3])
  n = n + 1
  ids[n] = ARGV[at]
  all[n] = {booking = ARGV[at], hold = ARGV[at + 1], request = ARGV[at + 2], first = at + 4, last = last}
  at = last + 1
end

-- Which of them are new, what they sell, and whose places they end.
local fresh, seen, marks, seats, sold_by, ends, asked = {}, {}, {}, {}, {}, {}, {}
for i, settled in ipairs(read_many('HMGET', key.settled, ids)) do
  local b = all[i]
  b.new = not settled and not seen[b.booking]
  if b.new then
    seen[b.booking] = true
    fresh[#fresh + 1] = b
    marks[#marks + 1], marks[#marks + 2] = b.booking, 'C'
    for j = b.first, b.last do seats[#seats + 1], sold_by[#sold_by + 1] = ARGV[j], b end
    if not ends[b.request] then asked[#asked + 1] = b.request end
    ends[b.request] = ends[b.request] or b
  end
end

local was_sold_out = sold_out()
if #fresh > 0 then
  sell(seats, sold_by)
  release_booked(fresh)
  learn_buyers(fresh)
  many('HSET', key.settled, marks)
  bump()
end
-- After the holds, so that only what else people hold is looked for.
local leaving, deadlines = {}, {}
for i, deadline in ipairs(read_many('ZMSCORE', key.active, asked)) do
  if deadline then
    leaving[#leaving + 1], deadlines[#deadlines + 1] = asked[i], deadline
    ends[asked[i]].frees = not over(tonumber(deadline))
  end
end
if #leaving > 0 then finish(leaving, 'LEFT', 'booked', deadlines) end

local reply = {'OK', numbers(held_now()), mark_sold_out(was_sold_out), changes}
for i, b in ipairs(all) do
  reply[3 + 2 * i], reply[4 + 2 * i] = b.new and 1 or 0, b.frees and 1 or 0
end
return reply
