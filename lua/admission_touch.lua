-- Renews the last contact of people who wait. Presence has those who wait, and those who
-- were let in and have not claimed yet, for whom it decides nothing; others are left out.
-- USES    clock
-- READS
-- WRITES  presence
-- ARGV    1 clock offset in ms, then requests
-- RETURNS OK

for i = 2, #ARGV do redis.call('ZADD', key.presence, 'XX', int(now), ARGV[i]) end
return {'OK'}
