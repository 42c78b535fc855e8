-- KEYS: the session. ARGV: how long it is known to be over.
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'over', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
