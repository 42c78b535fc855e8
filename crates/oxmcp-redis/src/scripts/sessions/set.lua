-- KEYS: the session. ARGV: a field, its value or nothing to remove it, most fields. Returns the version; -1 if there are too many.
if redis.call('HEXISTS', KEYS[1], 'record') == 0 then
    return false
end
if ARGV[2] == '' then
    redis.call('HDEL', KEYS[1], ARGV[1])
else
    if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
        return -1
    end
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return redis.call('HINCRBY', KEYS[1], 'version', 1)
