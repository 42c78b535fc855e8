-- KEYS: the task, all leases. ARGV: the time of the lease, channel.
local task = redis.call('HMGET', KEYS[1], 'lease', 'over', 'expires')
if not task[3] or (task[1] and tonumber(task[1]) > now) then
    return false
end
local ends = now + tonumber(ARGV[1])
redis.call('HSET', KEYS[1], 'lease', text(ends))
local epoch = redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('HINCRBY', KEYS[1], 'revision', 1)
if task[2] ~= '1' then
    redis.call('ZADD', KEYS[2], text(ends), KEYS[1])
    keep_until(KEYS[2], tonumber(task[3]))
end
redis.call('PUBLISH', ARGV[2], KEYS[1])
return epoch
