-- Removes a consumer's name from a group, unless it still has pending entries:
-- those would be lost with it.
-- KEYS[1] stream
-- ARGV[1] group
-- ARGV[2] consumer
-- Returns 1 removed, 0 kept or not there.
local group, consumer = ARGV[1], ARGV[2]
local pending = redis.pcall('XPENDING', KEYS[1], group, '-', '+', 1, consumer)
if pending.err or pending[1] then
  return 0
end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], group, consumer)
return 1
