-- Takes a ticket: its payload, once and in time.
-- USES    clock
-- READS
-- WRITES  ticket
-- ARGV    1 clock offset in ms
-- RETURNS OK, payload
--         NO_TICKET: unknown, used or too late

local value = redis.call('GET', key.ticket)
if not value then return {'NO_TICKET'} end
redis.call('DEL', key.ticket)

local deadline, payload = string.match(value, '^(%d+):(.*)$')
if over(tonumber(deadline)) then return {'NO_TICKET'} end
return {'OK', payload}
