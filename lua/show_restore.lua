-- Brings a show into Redis that is not there: its settings, its sold seats, and the holds of
-- bookings that are not decided, as SQL has them. What else was left of it is removed:
-- without the show's own hash nothing can be relied on.
-- USES    clock
-- READS
-- WRITES  show waiting active claimed presence rate draw ended trail arrivals revoked seats
--         holds deadlines begun owners bought seat_log sold_out settled codes
-- ARGV    1 clock offset in ms, 2 epoch, 3 capacity, 4 grace in ms, 5 number of settings,
--         6 number of seats sold, then settings as field, value ..., then of seats sold
--         seat, booking, request ..., then of bookings hold, booking, request, seat,seat ...
-- RETURNS OK: restored
--         LOADED: the show is there; nothing was changed

if redis.call('EXISTS', key.show) == 1 then return {'LOADED'} end

local RENEWAL = 30 * 1000 -- within this every page renews its presence
local epoch, capacity, grace = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local first_seat = 7 + 2 * tonumber(ARGV[5])
local first_begun = first_seat + 3 * tonumber(ARGV[6])

local seats, taken, bought, settled, sold, held = {}, {}, {}, {}, 0, 0
for i = first_seat, first_begun - 1, 3 do
  taken[ARGV[i]] = true
  seats[#seats + 1] = ARGV[i]
  seats[#seats + 1] = 's:' .. ARGV[i + 1]
  bought[ARGV[i + 2]] = (bought[ARGV[i + 2]] or 0) + 1
  settled[#settled + 1] = ARGV[i + 1]
  settled[#settled + 1] = 'C'
  sold = sold + 1
end

for _, name in pairs(key) do redis.call('DEL', name) end
for i = 7, first_seat - 1, 2 do redis.call('HSET', key.show, ARGV[i], ARGV[i + 1]) end
for i = first_begun, #ARGV, 4 do
  local hold, booking, request = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  for _, seat in ipairs(split(ARGV[i + 3], ',')) do
    if not taken[seat] then -- sold, or of an earlier booking: then this one will be rejected
      taken[seat], held = true, held + 1
      seats[#seats + 1], seats[#seats + 2] = seat, table.concat({'b', hold, request, booking}, ':')
    end
  end
  redis.call('HSET', key.holds, hold, table.concat({request, 'p', int(now), int(now), booking, int(now), ARGV[i + 3]}, ':'))
  redis.call('ZADD', key.begun, int(now), hold)
  local list = redis.call('HGET', key.owners, request)
  redis.call('HSET', key.owners, request, list and list .. ',' .. hold or hold)
end
redis.call('HSET', key.show, 'epoch', epoch, 'version', 1, 'seat_version', 1, 'seq', 0,
  'sold', sold, 'held', held, 'joined', 0, 'ended', 0, 'revoked', 0, 'passes_from', epoch,
  'places_from', epoch, 'last_tick', 0, 'next_tick', 0, 'drop_after', int(now + grace + RENEWAL))
many('HSET', key.seats, seats)
many('HSET', key.settled, settled)
for request, n in pairs(bought) do redis.call('HSET', key.bought, request, n) end
if capacity > 0 and sold >= capacity then redis.call('SET', key.sold_out, '1') end
return {'OK'}
