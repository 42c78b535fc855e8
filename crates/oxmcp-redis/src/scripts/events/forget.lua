-- KEYS: streams of the session. ARGV: what stands before the name of a stream in the key of its events, channel.
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
    redis.call('DEL', ARGV[1] .. name)
    wake(ARGV[2], ARGV[1] .. name)
end
redis.call('DEL', KEYS[1])
