-- KEYS: the task, all tasks, all leases. ARGV: the revision that was read, record, whether it is over, time to live, channel.
local task = redis.call('HMGET', KEYS[1], 'revision', 'created', 'owner', 'id')
if task[1] ~= ARGV[1] then
    return 0
end
local expires = tonumber(task[2]) + tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'record', ARGV[2], 'over', ARGV[3], 'expires', text(expires))
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('PEXPIREAT', KEYS[1], text(expires))
redis.call('ZADD', task[3], 'XX', text(expires), task[4])
keep_until(task[3], expires)
redis.call('ZADD', KEYS[2], 'XX', text(expires), KEYS[1])
keep_until(KEYS[2], expires)
if ARGV[3] == '1' then
    redis.call('ZREM', KEYS[3], KEYS[1])
end
redis.call('PUBLISH', ARGV[5], KEYS[1])
return 1
