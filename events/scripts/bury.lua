-- Makes a dead letter of an entry and acknowledges it, both or neither.
-- KEYS[1]  stream
-- KEYS[2]  its stream of dead letters
-- ARGV[1]  group
-- ARGV[2]  consumer
-- ARGV[3]  entry id
-- ARGV[4+] fields and values of the dead letter
-- Returns 1 done, 0 not pending any more, -1 owned by another consumer, which
-- will judge it itself.
local group, consumer, id = ARGV[1], ARGV[2], ARGV[3]
local pending = redis.pcall('XPENDING', KEYS[1], group, id, id, 1)
if pending.err or not pending[1] then
  return 0
end
if pending[1][2] ~= consumer then
  return -1
end
local fields = {}
for i = 4, #ARGV do
  fields[#fields + 1] = ARGV[i]
end
redis.call('XADD', KEYS[2], '*', unpack(fields))
redis.call('XACK', KEYS[1], group, id)
return 1
