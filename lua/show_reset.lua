-- Ends all places of a show at once, under a new epoch. Seats sold stay, and so do the
-- admissions of the last minute, since the rate holds across it; holds run out by
-- themselves. Passes of earlier epochs count no more. Done before, it changes nothing.
-- USES    clock show
-- READS
-- WRITES  show waiting active claimed presence draw ended trail arrivals
-- ARGV    1 clock offset in ms, 2 epoch that begins, 3 longest time between two contacts
--         of a page in ms
-- RETURNS OK, places that ended, epoch, version
--         STALE: the places there are of this epoch or a later one
--         NOT_LOADED: the show is not there

local epoch = tonumber(ARGV[2])
if epoch <= (show.places_from or 0) then return {'STALE'} end

local places = redis.call('ZCARD', key.waiting) + redis.call('ZCARD', key.active)
for _, name in ipairs({key.waiting, key.active, key.claimed, key.presence, key.draw, key.ended, key.trail, key.arrivals}) do
  redis.call('UNLINK', name) -- a million members are freed beside other commands
end
show.epoch = math.max(show.epoch, epoch)
redis.call('HSET', key.show, 'epoch', int(show.epoch), 'places_from', int(epoch), 'passes_from', int(show.epoch),
  'joined', 0, 'ended', 0, 'drop_after', int(now + show.grace_ms + tonumber(ARGV[3])))
bump()
return {'OK', places, show.epoch, show.version}
