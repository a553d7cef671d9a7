-- How bookings end; uses admission and seats.

-- Marks a seat sold, whoever holds it: what SQL sold beats every hold. A plain hold
-- that loses a seat is void as a whole, but for the booking's own.
local function sell(seat, booking, request, own_id)
  local value = redis.call('HGET', key.seats, seat)
  if value == 's:' .. booking then return end
  local kind, id = string.match(value or '', '^(%l):([^:]*)')
  if kind == 'h' and id ~= own_id then lapse(read_hold(id)) end
  put_seat(seat, 's:' .. booking)
  redis.call('HINCRBY', key.bought, request, 1)
end

local function settlement(done, freed_slot, sold_out_changed)
  return {'OK', done, freed_slot, sold_out_changed, numbers(held_now()), changes}
end
