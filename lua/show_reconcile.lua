-- Brings a show that is in Redis to what SQL has sold, after Redis came back with an older
-- state or a hand wrote into it. Places, sessions and sound holds stay. Each correction
-- names the value that it corrects, so that sales may go on meanwhile.
-- USES    clock show seats admission ending settlement
-- READS   active
-- WRITES  show seats holds deadlines begun owners bought seat_log sold_out settled
-- ARGV    1 clock offset in ms, 2 epoch (taken over when newer), then corrections of five:
--         CLEAR, seat, value, '', '': the value belongs to no hold
--         DROP, hold, '', '', '': it is not what its seats say
--         SELL, seat, booking, request, hold: sold by SQL
--         FREE, seat, booking, request, X or '': not sold by SQL; X: the booking is over
--         BOUGHT, request, counted, right, '': seats bought are miscounted
--         RECOUNT, '', '', '', '': seats sold or held are miscounted
-- RETURNS OK, epoch, version, seat version, {seat, state ...}
--         NOT_LOADED: the show is not there

local correct = {
  CLEAR = function(seat, value)
    if redis.call('HGET', key.seats, seat) == value then free_seats({seat}) end
  end,
  DROP = function(id)
    local hold = read_hold(id)
    if hold and hold.state == 'h' then release({hold}) end
  end,
  SELL = function(seat, booking, request, hold)
    local settled = redis.call('HGET', key.settled, booking)
    if settled == 'X' then return end -- cancelled since SQL was read
    sell({seat}, {{booking = booking, request = request, hold = hold}})
    if not settled then redis.call('HSET', key.settled, booking, 'C') end
  end,
  FREE = function(seat, booking, request, outcome)
    if redis.call('HGET', key.seats, seat) ~= 's:' .. booking then return end
    free_seats({seat})
    bought({[request] = -1})
    if outcome ~= '' then redis.call('HSET', key.settled, booking, outcome) end
  end,
  BOUGHT = function(request, counted, right)
    if (redis.call('HGET', key.bought, request) or '0') == counted then redis.call('HSET', key.bought, request, right) end
  end,
  RECOUNT = function()
    local seats = {held = 0, sold = 0}
    for _, value in ipairs(redis.call('HVALS', key.seats)) do
      local tally = TALLY[string.sub(value, 1, 1)]
      if tally then seats[tally] = seats[tally] + 1 end
    end
    for tally, n in pairs(seats) do count(tally, n - (show[tally] or 0)) end
  end,
}
for i = 3, #ARGV, 5 do correct[ARGV[i]](ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]) end

if sold_out() then redis.call('SET', key.sold_out, '1') else redis.call('DEL', key.sold_out) end
local epoch = tonumber(ARGV[2])
if epoch > show.epoch then
  show.epoch = epoch
  redis.call('HSET', key.show, 'epoch', int(epoch))
end
bump()
return {'OK', show.epoch, show.version, show.seat_version, changes}
