-- KEYS: all sessions, those of the principal if there is one. ARGV: a session, which is counted no more.
for _, key in ipairs(KEYS) do
    redis.call('ZREM', key, ARGV[1])
end
