-- KEYS: streams of the session, events of the stream, the session. ARGV: name, whether to take over a lease, time of the lease, most
-- streams, age of events, age of streams, channel. Returns the epoch, nothing if the stream has ended or is leased, or -3 if there
-- are too many streams.
local stream = read(ARGV[1])
if stream and (stream.ended == 1 or (ARGV[2] == '0' and stream.lease > now)) then
    return false
end
if not stream then
    if not has_room(tonumber(ARGV[4]), tonumber(ARGV[5])) then
        return -3
    end
    stream = new()
end
stream.epoch = stream.epoch + 1
stream.lease = now + tonumber(ARGV[3])
stream.touched = now
write(ARGV[1], stream)
keep(KEYS[3], ARGV[5], ARGV[6])
wake(ARGV[7], KEYS[2])
return stream.epoch
