-- KEYS: streams of the session. ARGV: prefix of the keys of events, which is followed by the name of a stream; channel.
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
    redis.call('DEL', ARGV[1] .. name)
    wake(ARGV[2], ARGV[1] .. name)
end
redis.call('DEL', KEYS[1])
