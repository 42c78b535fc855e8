-- KEYS: streams of the session. ARGV: name, index, how long somebody watches. Returns the epoch of its lease;
-- nothing where there is something to see, or nothing to wait for.
local stream = read(ARGV[1])
if not stream or stream.ended == 1 or stream.last ~= tonumber(ARGV[2]) then
    return false
end
redis.call('HSET', KEYS[1], ':watched', text(now + tonumber(ARGV[3])))
return stream.epoch
