-- KEYS: all sessions, and those of the principal if there is one. ARGV: a session to remove from the counts.
for _, key in ipairs(KEYS) do
    redis.call('ZREM', key, ARGV[1])
end
