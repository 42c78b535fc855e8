-- KEYS: all sessions, and those of the principal if there is one. ARGV: a session, its lifetime, most sessions, most of a principal.
local counted = redis.call('ZSCORE', KEYS[1], ARGV[1])
if counted and tonumber(counted) > now then
    return 'counted'
end
local after_now = '(' .. text(now)
if KEYS[2] and redis.call('ZCOUNT', KEYS[2], after_now, '+inf') >= tonumber(ARGV[4]) then
    return 'principal full'
end
if redis.call('ZCOUNT', KEYS[1], after_now, '+inf') >= tonumber(ARGV[3]) then
    return 'full'
end
local expires = now + tonumber(ARGV[2])
for _, key in ipairs(KEYS) do
    redis.call('ZADD', key, text(expires), ARGV[1])
    keep_until(key, expires)
    redis.call('ZREMRANGEBYSCORE', key, '-inf', text(now))
end
return 'admitted'
