-- KEYS: streams of the session, the session. ARGV: name, epoch, time of the lease, age of events, age of streams. Returns whether the
-- lease was renewed.
local stream = read(ARGV[1])
if not stream or stream.ended == 1 or stream.epoch ~= tonumber(ARGV[2]) then
    return 0
end
stream.lease = now + tonumber(ARGV[3])
write(ARGV[1], stream)
keep(KEYS[2], ARGV[4], ARGV[5])
return 1
