-- Puts a dead letter's command back on its stream, with its old command id.
-- KEYS[1] stream of dead letters
-- KEYS[2] the stream they came from
-- ARGV[1] id of the dead letter
-- ARGV[2] prefix of the fields that describe the death, which stay behind
-- Returns 1 done, 0 no such dead letter.
local id, prefix = ARGV[1], ARGV[2]
local found = redis.call('XRANGE', KEYS[1], id, id)
if not found[1] then
  return 0
end
local letter, fields = found[1][2], {}
for i = 1, #letter, 2 do
  if string.sub(letter[i], 1, #prefix) ~= prefix then
    fields[#fields + 1] = letter[i]
    fields[#fields + 1] = letter[i + 1]
  end
end
redis.call('XADD', KEYS[2], '*', unpack(fields))
redis.call('XDEL', KEYS[1], id)
return 1
