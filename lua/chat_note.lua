-- Notes what a person has read, until SQL knows it too. Within an epoch a note only
-- moves forward; a note of an older epoch is void.
-- USES    clock
-- READS
-- WRITES  read_notes
-- ARGV    1 clock offset in ms, 2 life in ms, 3 chat room, 4 read up to, 5 epoch
-- RETURNS OK

local life, room, up_to, epoch = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local note = redis.call('HGET', key.read_notes, room)
if note then
  local old_epoch, old_up_to, deadline = string.match(note, '^(%d+):(%d+):(%d+)$')
  if not over(tonumber(deadline)) then
    if tonumber(old_epoch) > epoch then return {'OK'} end
    if tonumber(old_epoch) == epoch then up_to = math.max(up_to, tonumber(old_up_to)) end
  end
end
redis.call('HSET', key.read_notes, room, table.concat({int(epoch), int(up_to), int(now + life)}, ':'))
redis.call('PEXPIRE', key.read_notes, int(life))
return {'OK'}
