-- How bookings end; uses admission and seats.

-- Adds seats to what people have bought: a number for each request, which may be below 0.
local function bought(buys)
  local requests, counts = {}, {}
  for request in pairs(buys) do requests[#requests + 1] = request end
  for i, had in ipairs(read_many('HMGET', key.bought, requests)) do
    counts[#counts + 1], counts[#counts + 2] = requests[i], int(tonumber(had or 0) + buys[requests[i]])
  end
  many('HSET', key.bought, counts)
end

-- Marks seats sold, whoever holds them: what SQL sold beats every hold. A plain hold
-- that loses a seat is void as a whole, but for the booking's own. Each seat comes with
-- {booking, request, hold} that it is sold by.
local function sell(wanted, sold_by)
  local seats, values, stand, buys, void, losers = {}, {}, {}, {}, {}, {}
  local n, sold, by = 0, nil, nil
  for i, value in ipairs(read_many('HMGET', key.seats, wanted)) do
    if by ~= sold_by[i] then
      by = sold_by[i]
      sold = 's:' .. by.booking
    end
    local id = value and part(value, 1, 1) == 'h' and holder(value)
    if id and id ~= by.hold and not losers[id] then
      losers[id] = true
      void[#void + 1] = id
    end
    if value ~= sold then
      n = n + 1
      seats[n], values[n], stand[n] = wanted[i], sold, value
      buys[by.request] = (buys[by.request] or 0) + 1
    end
  end
  lapse(read_holds(void))
  put_seats(seats, values, #void == 0 and stand)
  bought(buys)
end

-- Lets go of the holds of bookings whose seats, ARGV[first] to ARGV[last], are sold. As
-- good as always a hold has just these seats, and its parts need not be read.
local function release_booked(bookings)
  local ids, holds, no_seats = {}, {}, {}
  for i, b in ipairs(bookings) do ids[i] = b.hold end
  for i, value in ipairs(read_many('HMGET', key.holds, ids)) do
    local b = bookings[i]
    if value and starts_with(value, b.request .. ':') and ends_with(value, ':' .. table.concat(ARGV, ',', b.first, b.last)) then
      holds[#holds + 1] = {id = b.hold, request = b.request, state = part(value, #b.request + 2, #b.request + 2), seats = no_seats}
    elseif value then
      holds[#holds + 1] = parse_hold(b.hold, value)
    end
  end
  release(holds)
end

-- Keeps a moving average of what the last buyers bought, in thousandths of a seat.
local function learn_buyers(bookings)
  local average = show.per_buyer
  for _, b in ipairs(bookings) do
    local seats = 1000 * (b.last - b.first + 1)
    average = average and math.floor(average + (seats - average) / 16 + 0.5) or seats
  end
  count('per_buyer', average - (show.per_buyer or 0))
end

local function settlement(done, freed_slot, sold_out_changed)
  return {'OK', numbers(held_now()), sold_out_changed, changes, done, freed_slot}
end
