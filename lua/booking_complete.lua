-- Makes confirmed bookings true in Redis, whatever is left of their holds: what SQL sold
-- is sold. Ends their persons' sessions. A booking settled before changes nothing.
-- USES    clock show seats admission ending settlement
-- READS   rate
-- WRITES  show waiting active claimed presence ended revoked seats holds deadlines begun
--         owners bought seat_log sold_out settled
-- ARGV    1 clock offset in ms, then booking, hold, request, number of its seats, seats ...
-- RETURNS OK, numbers, then for each booking {done (0: settled before), freed a slot,
--           sold out has changed (each 1 or 0), seat version, {seat, state ...}}
--         NOT_LOADED: the show is not there

local all, ids, at = {}, {}, 2
while ARGV[at] do
  local last = at + 3 + tonumber(ARGV[at + 3])
  ids[#ids + 1] = ARGV[at]
  all[#all + 1] = {booking = ARGV[at], hold = ARGV[at + 1], request = ARGV[at + 2], first = at + 4, last = last}
  at = last + 1
end

-- Which of them are new, and whose places they end.
local fresh, asked, ends, marks = {}, {}, {}, {}
for i, settled in ipairs(read_many('HMGET', key.settled, ids)) do
  local b = all[i]
  b.new = not settled and not fresh[b.booking]
  if b.new then
    fresh[b.booking] = true
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

local average, replies = show.per_buyer, {}
for i, b in ipairs(all) do
  local before, from = sold_out(), i > 1 and #changes or 0 -- the first one tells what the ends of places freed
  if i > 1 then stamp = nil end -- each booking's seats are told apart
  if b.new then
    local seats = 1000 * (b.last - b.first + 1) -- a moving average of the last buyers, in thousandths of a seat
    average = average and math.floor(average + (seats - average) / 16 + 0.5) or seats
    for j = b.first, b.last do sell(ARGV[j], b.booking, b.request, b.hold) end
    local hold = read_hold(b.hold)
    if hold then release(hold) end
  end
  replies[i] = {b.new and 1 or 0, b.frees and 1 or 0, mark_sold_out(before), show.seat_version, {unpack(changes, from + 1)}}
end
if #marks > 0 then
  count('per_buyer', average - (show.per_buyer or 0))
  many('HSET', key.settled, marks)
  bump()
end
return {'OK', numbers(held_now()), unpack(replies)}
