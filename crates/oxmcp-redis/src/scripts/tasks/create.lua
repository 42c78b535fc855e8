-- KEYS: the task, its owner, all tasks. ARGV: record, id, whether it is over, time to live, most tasks, most of one owner.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return 'known'
end
local after_now = '(' .. text(now)
if redis.call('ZCOUNT', KEYS[3], after_now, '+inf') >= tonumber(ARGV[5])
    or redis.call('ZCOUNT', KEYS[2], after_now, '+inf') >= tonumber(ARGV[6]) then
    return 'full'
end
local expires = now + tonumber(ARGV[4])
-- The commands that need memory come first: if Redis is full, nothing has been done.
redis.call('HSET', KEYS[1], 'record', ARGV[1], 'id', ARGV[2], 'owner', KEYS[2], 'over', ARGV[3],
    'created', text(now), 'expires', text(expires), 'revision', 1, 'epoch', 0)
redis.call('PEXPIREAT', KEYS[1], text(expires))
redis.call('ZADD', KEYS[2], text(expires), ARGV[2])
keep_until(KEYS[2], expires)
redis.call('ZADD', KEYS[3], text(expires), KEYS[1])
keep_until(KEYS[3], expires)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(now))
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', text(now))
return 'created'
