-- KEYS: the session. ARGV: the lifetime of its tombstone. Returns the key of the principal's sessions.
local principal = redis.call('HGET', KEYS[1], 'principal') or ''
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'over', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return principal
