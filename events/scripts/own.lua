-- Keeps entries for the consumer that still owns them.
-- KEYS[1]  stream
-- ARGV[1]  group
-- ARGV[2]  consumer
-- ARGV[3]  idle time in ms that the entries are left with: 0 renews the
--          ownership, a long time hands them back to whoever sweeps next
-- ARGV[4+] pairs of entry id and delivery count to set, -1 to leave it
-- Returns one number an entry: 1 owned, 0 not pending any more (acknowledged, or
-- lost with its group), -1 owned by another consumer, which is left alone.
local group, consumer, idle = ARGV[1], ARGV[2], ARGV[3]
local results = {}
for i = 4, #ARGV, 2 do
  local id, count = ARGV[i], ARGV[i + 1]
  local pending = redis.pcall('XPENDING', KEYS[1], group, id, id, 1)
  local result = 0
  if not pending.err and pending[1] then
    result = -1
    if pending[1][2] == consumer then
      result = 1
      if count == '-1' then
        count = pending[1][4] -- said again: not every Redis leaves it alone otherwise
      end
      redis.call('XCLAIM', KEYS[1], group, consumer, 0, id, 'IDLE', idle, 'RETRYCOUNT', count, 'JUSTID')
    end
  end
  results[#results + 1] = result
end
return results
