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

local all, ids, at = {}, {}, 2
while ARGV[at] do
  local last = at + 3 + tonumber(ARGV[at + 3])
  ids[#ids + 1] = ARGV[at]
  all[#all + 1] = {booking = ARGV[at], hold = ARGV[at + 1], request = ARGV[at + 2], first = at + 4, last = last}
  at = last + 1
end

-- Which of them are new, and whose places they end.
local fresh, seen, asked, ends, marks = {}, {}, {}, {}, {}
for i, settled in ipairs(read_many('HMGET', key.settled, ids)) do
  local b = all[i]
  b.new = not settled and not seen[b.booking]
  if b.new then
    seen[b.booking] = true
    fresh[#fresh + 1] = b
    marks[#marks + 1], marks[#marks + 2] = b.booking, 'C'
    if not ends[b.request] then asked[#asked + 1] = b.request end
    ends[b.request] = ends[b.request] or b
  end
end
local leaving = {}
for i, deadline in ipairs(read_many('ZMSCORE', key.active, asked)) do
  if deadline then leaving[#leaving + 1] = asked[i] end
  ends[asked[i]].frees = deadline and not over(tonumber(deadline))
end
if #leaving > 0 then finish(leaving, 'LEFT', 'booked') end

local was_sold_out = sold_out()
if #fresh > 0 then
  local sales = {}
  for _, b in ipairs(fresh) do
    for j = b.first, b.last do sales[#sales + 1] = {ARGV[j], b} end
  end
  sell(sales)
  release_booked(fresh)
  learn_buyers(fresh)
  many('HSET', key.settled, marks)
  bump()
end

local reply = {'OK', numbers(held_now()), mark_sold_out(was_sold_out), changes}
for _, b in ipairs(all) do
  reply[#reply + 1], reply[#reply + 2] = b.new and 1 or 0, b.frees and 1 or 0
end
return reply
