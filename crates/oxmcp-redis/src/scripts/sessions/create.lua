-- KEYS: the session. ARGV: its lifetime, then fields and their values. Returns whether it was created.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return 0
end
redis.call('HSET', KEYS[1], 'version', 1)
for at = 2, #ARGV, 2 do
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
