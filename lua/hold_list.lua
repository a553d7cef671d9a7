-- Tells a person's live holds, those being booked among them.
-- USES    clock show seats
-- READS   show holds owners
-- WRITES
-- ARGV    1 clock offset in ms, 2 request
-- RETURNS OK, now, seat version, then for each hold {hold, deadline, ceiling, seats ...}
--         NOT_LOADED: the show is not there

local reply = {'OK', now, show.seat_version}
for _, hold in ipairs((holds_of(ARGV[2]))) do
  reply[#reply + 1] = {hold.id, hold.deadline, hold.ceiling, unpack(hold.seats)}
end
return reply
