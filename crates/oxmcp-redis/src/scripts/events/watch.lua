-- KEYS: streams of the session. ARGV: name, index, how long the waiter is notified. Returns the epoch of the lease; nothing if there
-- are events after the index, or the stream has ended or does not exist.
local stream = read(ARGV[1])
if not stream or stream.ended == 1 or stream.last ~= tonumber(ARGV[2]) then
    return false
end
redis.call('HSET', KEYS[1], ':watched', text(now + tonumber(ARGV[3])))
return stream.epoch
