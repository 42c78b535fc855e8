-- KEYS: the task, all leases. ARGV: the epoch of the lease, its time.
local task = redis.call('HMGET', KEYS[1], 'epoch', 'lease', 'over')
if task[1] ~= ARGV[1] or not task[2] or tonumber(task[2]) <= now then
    return 0
end
local ends = text(now + tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'lease', ends)
if task[3] ~= '1' then
    redis.call('ZADD', KEYS[2], ends, KEYS[1])
end
return 1
