-- Gives people a place, in the order given. Who has one keeps it; whose place is over
-- gets a new one at the end of the line.
-- USES    clock show seats admission codes ending
-- READS
-- WRITES  show waiting active claimed presence rate draw ended trail revoked seats holds
--         deadlines begun owners seat_log codes
-- ARGV    1 clock offset in ms, 2 score below which all places are drawn, 3 mark of their
--         seed (0: any), then request, drawn score in its lane's stretch (or SCORE:CODE:USES) ...
-- RETURNS OK, numbers, then for each request {code, created (1 or 0), place}, where code is
--           OK
--           NOT_OPEN, with the instant in ms from which joining works instead of created
--           SOLD_OUT or CLOSED: no new places
--           USED_UP: as many others have used the code as may
--         OTHER_DRAW: places are being drawn, and by another seed; nobody joined
--         NOT_LOADED: the show is not there

local ceiling, mark, stands = tonumber(ARGV[2]), tonumber(ARGV[3]), phase()
if stands == 'PREQUEUE' and mark ~= 0 and mark ~= (show.draw_mark or mark) then return {'OTHER_DRAW'} end
local free, crowd = room(), redis.call('ZCARD', key.waiting)
local codes, created, drawn_now = {}, {}, {}

local function place_anew(request, drawn)
  if redis.call('ZSCORE', key.active, request) then finish({request}, 'EXPIRED') end
  local past = forget_end(request) -- with one, is in the draw, if it goes on
  count('joined', 1)
  if crowd == 0 and free > 0 then
    free = free - 1
    return admit({request})
  end
  local in_draw = stands == 'PREQUEUE'
  if in_draw and not past then drawn_now[#drawn_now + 1] = request end
  redis.call('ZADD', key.waiting, in_draw and drawn or int(lane_of(drawn) * SPAN + ceiling + count('seq', 1)), request)
  redis.call('ZADD', key.presence, int(now), request)
  crowd = crowd + 1
end

local refused = ({SCHEDULED = 'NOT_OPEN', SOLD_OUT = 'SOLD_OUT', CLOSED = 'CLOSED'})[stands]
local any = false
for i = 4, #ARGV, 2 do
  local standing = place_of(ARGV[i])[1]
  local gone = standing == 'NONE' or standing == 'EXPIRED' or standing == 'LEFT'
  local drawn, code, uses = read_drawn(ARGV[i + 1])
  local why = refused or gone and not may_use(code, uses, ARGV[i]) and 'USED_UP'
  codes[i] = gone and why or 'OK'
  created[i] = gone and not why
  if created[i] then
    use(code, ARGV[i])
    place_anew(ARGV[i], drawn)
    any = true
  end
end
many('RPUSH', key.draw, drawn_now)
if any then bump() end

local reply = {'OK', numbers(0)}
for i = 4, #ARGV, 2 do
  local second_value = codes[i] == 'NOT_OPEN' and show.join_at or created[i] and 1 or 0
  reply[#reply + 1] = {codes[i], second_value, place_of(ARGV[i])}
end
return reply
