-- Takes over entries that have been idle for long enough, and counts the delivery.
-- KEYS[1]  stream
-- ARGV[1]  group
-- ARGV[2]  consumer
-- ARGV[3]  idle time in ms that an entry must have; checked here once more, so
--          that of two who saw the same entry one gets it
-- ARGV[4+] entry ids
-- Returns {id, deliveries, {field, value, ...}} for each that was taken. An entry
-- that is no longer on the stream is acknowledged, or it would be claimed for ever.
local group, consumer, idle = ARGV[1], ARGV[2], ARGV[3]
local taken = {}
for i = 4, #ARGV do
  local id = ARGV[i]
  local pending = redis.call('XPENDING', KEYS[1], group, 'IDLE', idle, id, id, 1)
  if pending[1] then
    local deliveries = pending[1][4] + 1
    redis.call('XCLAIM', KEYS[1], group, consumer, 0, id, 'RETRYCOUNT', deliveries, 'JUSTID')
    local entry = redis.call('XRANGE', KEYS[1], id, id)
    if entry[1] then
      taken[#taken + 1] = {id, deliveries, entry[1][2]}
    else
      redis.call('XACK', KEYS[1], group, id)
    end
  end
end
return taken
