-- KEYS: streams of the session, events of the stream. ARGV: name, index, most events. Returns whether the stream has ended with them,
-- and the events; nothing if some are lost.
local stream = read(ARGV[1])
local index, most = tonumber(ARGV[2]), tonumber(ARGV[3])
if not stream or index > stream.last then
    return false
end
local found = {''}
if index < stream.last then
    local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
    if not oldest or tonumber(string.match(oldest[1], '^%d+')) > index + 1 then
        return false
    end
    if most > 0 then
        for _, event in ipairs(redis.call('XRANGE', KEYS[2], text(index + 1) .. '-0', '+', 'COUNT', most)) do
            found[#found + 1] = event[2][2]
        end
    end
end
local all = index + #found - 1 == stream.last
found[1] = (stream.ended == 1 and all) and '1' or '0'
return found
