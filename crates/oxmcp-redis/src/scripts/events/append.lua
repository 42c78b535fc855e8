-- KEYS: streams of the session, events of the stream, the session. ARGV: name, epoch of the lease or nothing, its time, whether the
-- stream ends, most events, most bytes, most streams, age of events, age of streams, channel, then the events. Returns the index of the
-- last event, or -1 if the lease was lost, -2 if the stream has ended, -3 if there are too many streams.
local first = 11
local stream = read(ARGV[1])
local count = #ARGV - first + 1
if count == 0 and (not stream or ARGV[4] == '0') then
    return 0
end
local epoch = tonumber(ARGV[2])
if stream and epoch and epoch < stream.epoch then
    return -1
end
if stream and stream.ended == 1 and count > 0 then
    return -2
end
if not stream then
    if not has_room(tonumber(ARGV[7]), tonumber(ARGV[8])) then
        return -3
    end
    stream = new()
end
for at = first, #ARGV do
    stream.last = stream.last + 1
    stream.bytes = stream.bytes + #ARGV[at]
    redis.call('XADD', KEYS[2], text(stream.last) .. '-0', 'e', ARGV[at])
end
while stream.bytes > tonumber(ARGV[6]) or redis.call('XLEN', KEYS[2]) > tonumber(ARGV[5]) do
    local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
    if not oldest then
        -- The events have expired.
        stream.bytes = 0
        break
    end
    stream.bytes = stream.bytes - #oldest[2][2]
    redis.call('XDEL', KEYS[2], oldest[1])
end
if epoch then
    stream.epoch = epoch
    stream.lease = now + tonumber(ARGV[3])
end
if ARGV[4] == '1' then
    stream.ended = 1
end
stream.touched = now
write(ARGV[1], stream)
keep(KEYS[3], ARGV[8], ARGV[9])
redis.call('PEXPIRE', KEYS[2], ARGV[8])
wake(ARGV[10], KEYS[2])
return stream.last
