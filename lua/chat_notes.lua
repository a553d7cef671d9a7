-- Tells what a person has read lately in some chat rooms.
-- USES    clock
-- READS   read_notes
-- WRITES
-- ARGV    1 clock offset in ms, then chat rooms
-- RETURNS OK, then for each chat room with a note: its number in ARGV less 1, read up to, epoch

local reply, rooms = {'OK'}, {}
for i = 2, #ARGV do rooms[i - 1] = ARGV[i] end
for i, note in ipairs(read_many('HMGET', key.read_notes, rooms)) do
  local epoch, up_to, deadline = string.match(note or '', '^(%d+):(%d+):(%d+)$')
  if epoch and not over(tonumber(deadline)) then
    reply[#reply + 1] = i
    reply[#reply + 1] = tonumber(up_to)
    reply[#reply + 1] = tonumber(epoch)
  end
end
return reply
