-- KEYS: all leases. ARGV: how many to return, how many to examine. Returns pairs of an id and the owner's key.
local found = {}
local ended = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', text(now), 'LIMIT', 0, ARGV[2])
for _, key in ipairs(ended) do
    local task = redis.call('HMGET', key, 'id', 'owner')
    if not task[1] then
        redis.call('ZREM', KEYS[1], key)
    elseif #found < 2 * tonumber(ARGV[1]) then
        found[#found + 1] = task[1]
        found[#found + 1] = task[2]
    end
end
return found
