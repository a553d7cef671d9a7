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
local free, crowd, joined, seq = room(), redis.call('ZCARD', key.waiting), 0, show.seq
local drawn_now, reply = {}, {'OK', false}
-- Answers the place of whoever comes to the end of the only line, known without looking.
local function place_anew(request, drawn, standing)
  if standing == 'EXPIRED' and redis.call('ZSCORE', key.active, request) then finish({request}, 'EXPIRED') end
  local past = standing ~= 'NONE' and forget_end(request) -- with one, is in the draw, if it goes on
  joined = joined + 1
  if crowd == 0 and free > 0 then
    free = free - 1
    return admit({request})
  end
  local in_draw = stands == 'PREQUEUE'
  if in_draw and not past then drawn_now[#drawn_now + 1] = request end
  if not in_draw then seq, drawn = seq + 1, lane_of(drawn) * SPAN + ceiling + seq + 1 end
  redis.call('ZADD', key.waiting, int(tonumber(drawn)), request)
  redis.call('ZADD', key.presence, int(now), request)
  crowd = crowd + 1
  return not in_draw and not show.lanes and {'WAITING', crowd, drawn, 0} or nil
end

local refused = ({SCHEDULED = 'NOT_OPEN', SOLD_OUT = 'SOLD_OUT', CLOSED = 'CLOSED'})[stands]
for i = 4, #ARGV, 2 do
  local request, standing = ARGV[i], place_of(ARGV[i])[1]
  local gone = standing == 'NONE' or standing == 'EXPIRED' or standing == 'LEFT'
  local drawn, code, uses = read_drawn(ARGV[i + 1])
  local why = gone and (refused or not may_use(code, uses, request) and 'USED_UP')
  local created, place = gone and not why, nil
  if created then
    use(code, request)
    place = place_anew(request, drawn, standing)
  end
  reply[#reply + 1] = {why or 'OK', why == 'NOT_OPEN' and show.join_at or created and 1 or 0, place}
end
many('RPUSH', key.draw, drawn_now)
if joined > 0 then
  count('joined', joined)
  count('seq', seq - show.seq)
  bump()
end
reply[2] = numbers(0)
for i = 3, #reply do reply[i][3] = reply[i][3] or place_of(ARGV[2 * i - 2]) end
return reply
