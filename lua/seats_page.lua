-- Tells the seats that are not free, a page at a time, so that a large plan holds up
-- nobody. Seats that change between pages are in seats_delta since the first version.
-- USES    clock show seats
-- READS   show seats
-- WRITES
-- ARGV    1 clock offset in ms, 2 cursor (0: first page), 3 about how many seats,
--         4 request of the viewer
-- RETURNS OK, epoch, seat version, next cursor (0: that was all), {seat, state, hold (only
--           the viewer's own) ...}
--         NOT_LOADED: the show is not there

local page = redis.call('HSCAN', key.seats, ARGV[2], 'COUNT', ARGV[3])
local seats = {}
for i = 1, #page[2], 2 do
  local state, hold = seen_by(ARGV[4], page[2][i + 1])
  if state ~= 'FREE' then
    seats[#seats + 1] = page[2][i]
    seats[#seats + 1] = state
    seats[#seats + 1] = hold
  end
end
return {'OK', show.epoch, show.seat_version, page[1], seats}
