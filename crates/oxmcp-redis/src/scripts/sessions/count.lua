-- KEYS: all sessions, those of the principal if there is one. ARGV: a session, how long it is counted from now on.
local expires = now + tonumber(ARGV[2])
for _, key in ipairs(KEYS) do
    redis.call('ZADD', key, text(expires), ARGV[1])
    keep_until(key, expires)
end
