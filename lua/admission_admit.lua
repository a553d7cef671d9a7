-- Ends what is over, drops waiters who fell silent, and lets in as many as there is
-- room for, in order. Whoever calls and however often: never more inside than allowed.
-- USES    clock show seats admission lanes ending
-- READS
-- WRITES  show waiting active claimed presence rate ended revoked seats holds deadlines
--         begun owners seat_log
-- ARGV    1 clock offset in ms, 2 interval in ms (0: a slot was freed, run now),
--         3 most to admit, 4 most to end, of each kind, 5 by an operator (1: also while
--         paused)
-- RETURNS OK, numbers, skipped (1: a run was less than half the interval ago, nothing was
--           over), more (1: call again), turn deadline in ms, admitted, ended, freed seats
--         NOT_LOADED: the show is not there

local interval, batch, limit = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local OUTAGE, RENEWAL = 10 * 1000, 30 * 1000

local overdue = redis.call('ZRANGEBYSCORE', key.active, '-inf', int(now), 'LIMIT', 0, limit)
local since = now - show.last_tick -- negative after the clock was set back
if interval > 0 and #overdue == 0 and since >= 0 and since < interval / 2 then
  return {'OK', numbers(held_now()), 1, 0, 0, {}, {}, {}}
end
finish(overdue, 'EXPIRED')
straighten_rate()

-- While nobody ticked, nobody may have been able to renew presence either.
if since > OUTAGE then show.drop_after = now + show.grace_ms + RENEWAL end
redis.call('HSET', key.show, 'last_tick', int(now), 'drop_after', int(show.drop_after))

local silent, stands, quiet, ghosts = now - show.grace_ms, phase(), {}, {}
if over(show.drop_after) and stands ~= 'SOLD_OUT' and stands ~= 'CLOSED' then
  quiet = redis.call('ZRANGEBYSCORE', key.presence, '-inf', int(silent), 'LIMIT', 0, limit)
  ghosts = those_waiting(quiet)
  finish(ghosts, 'EXPIRED', 'silent')
end

-- More silent ones than one call may drop can stand at the front still.
local free, guests, late = room(ARGV[5] == '1'), {}, {}
if show.lanes then -- ghosts would use up their lane's turns, so they go first
  if free > 0 and #quiet < limit then guests = take_by_turns(math.min(free, batch)) end
else
  if free > 0 then guests = redis.call('ZRANGE', key.waiting, 0, math.min(free, batch) - 1) end
  if #quiet == limit then guests, late = part_by_contact(guests, silent) end
  finish(late, 'EXPIRED', 'silent')
  if #guests > 0 then redis.call('ZREMRANGEBYRANK', key.waiting, 0, #guests - 1) end
end
admit(guests)

local ended = {}
for _, list in ipairs({overdue, ghosts, late}) do
  for _, request in ipairs(list) do ended[#ended + 1] = request end
end
if #ended + #guests > 0 then bump() end
local freed = {}
for i = 1, #changes, 2 do freed[#freed + 1] = changes[i] end
local more = #overdue == limit or #quiet == limit
  or free > #guests and redis.call('ZCARD', key.waiting) > 0
return {'OK', numbers(held_now()), 0, more and 1 or 0, now + show.turn_ms, guests, ended, freed}
