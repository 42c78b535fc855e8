-- KEYS: all sessions, and those of the principal if there is one. ARGV: a session, the time for which it is counted.
local expires = now + tonumber(ARGV[2])
for _, key in ipairs(KEYS) do
    redis.call('ZADD', key, text(expires), ARGV[1])
    keep_until(key, expires)
end
