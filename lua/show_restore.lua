-- Brings a show into Redis that is not there: its settings and its sold seats, as
-- SQL has them. What else was left of it is removed: without the show's own hash
-- nothing can be relied on.
-- USES    clock
-- READS
-- WRITES  show waiting active claimed presence rate draw ended trail arrivals revoked seats
--         holds deadlines begun owners bought seat_log sold_out settled codes
-- ARGV    1 clock offset in ms, 2 epoch, 3 capacity, 4 grace in ms, 5 number of
--         settings, then settings as field, value ..., then seat, booking, request ...
-- RETURNS OK: restored
--         LOADED: the show is there; nothing was changed

if redis.call('EXISTS', key.show) == 1 then return {'LOADED'} end

local RENEWAL = 30 * 1000 -- within this every page renews its presence
local epoch, capacity, grace = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local first_seat = 6 + 2 * tonumber(ARGV[5])

local seats, bought, settled, sold = {}, {}, {}, 0
for i = first_seat, #ARGV, 3 do
  seats[#seats + 1] = ARGV[i]
  seats[#seats + 1] = 's:' .. ARGV[i + 1]
  bought[ARGV[i + 2]] = (bought[ARGV[i + 2]] or 0) + 1
  settled[#settled + 1] = ARGV[i + 1]
  settled[#settled + 1] = 'C'
  sold = sold + 1
end

for _, name in pairs(key) do redis.call('DEL', name) end
for i = 6, first_seat - 1, 2 do redis.call('HSET', key.show, ARGV[i], ARGV[i + 1]) end
redis.call('HSET', key.show, 'epoch', epoch, 'version', 1, 'seat_version', 1, 'seq', 0,
  'sold', sold, 'held', 0, 'joined', 0, 'ended', 0, 'revoked', 0, 'passes_from', epoch,
  'places_from', epoch, 'last_tick', 0, 'next_tick', 0, 'drop_after', int(now + grace + RENEWAL))
many('HSET', key.seats, seats)
many('HSET', key.settled, settled)
for request, n in pairs(bought) do redis.call('HSET', key.bought, request, n) end
if capacity > 0 and sold >= capacity then redis.call('SET', key.sold_out, '1') end
return {'OK'}
