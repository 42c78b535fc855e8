-- KEYS: an owner. Returns the ids of the owner's tasks.
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(now), '+inf')
