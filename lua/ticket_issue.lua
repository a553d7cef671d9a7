-- Keeps the payload of a one-time ticket. Its deadline is data, for the embedded
-- server lets no key expire by itself; the real expiry only saves memory.
-- USES    clock
-- READS
-- WRITES  ticket
-- ARGV    1 clock offset in ms, 2 life in ms, 3 payload
-- RETURNS OK

local life = tonumber(ARGV[2])
redis.call('SET', key.ticket, int(now + life) .. ':' .. ARGV[3], 'PX', int(life))
return {'OK'}
