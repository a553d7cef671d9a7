-- Notes that the command of a begun booking is on its stream.
-- USES    clock show seats
-- READS   show
-- WRITES  holds
-- ARGV    1 clock offset in ms, 2 hold, 3 booking
-- RETURNS OK: noted, or settled already
--         NOT_LOADED: the show is not there

local hold = read_hold(ARGV[2])
if hold and hold.state == 'b' and hold.booking == ARGV[3] then
  hold.state = 'p'
  write_hold(hold)
end
return {'OK'}
