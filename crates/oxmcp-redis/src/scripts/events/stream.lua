-- What is known of a stream is one field of the hash of its session: the index of its last event, whether it has ended (1), the epoch
-- of its newest lease and when that ends, when something was written last, and how many bytes are kept.
local function read(name)
    local text = redis.call('HGET', KEYS[1], name)
    if not text then
        return nil
    end
    local words = {}
    for word in string.gmatch(text, '%S+') do
        words[#words + 1] = tonumber(word)
    end
    return {last = words[1], ended = words[2], epoch = words[3], lease = words[4], touched = words[5], bytes = words[6]}
end

local function new()
    return {last = 0, ended = 0, epoch = 0, lease = 0, touched = now, bytes = 0}
end

local function write(name, stream)
    local numbers = {stream.last, stream.ended, stream.epoch, stream.lease, stream.touched, stream.bytes}
    for at, number in ipairs(numbers) do
        numbers[at] = text(number)
    end
    redis.call('HSET', KEYS[1], name, table.concat(numbers, ' '))
end

-- Tells those that wait, if there are any.
local function wake(channel, key)
    local watched = redis.call('HGET', KEYS[1], ':watched')
    if watched and tonumber(watched) > now then
        redis.call('PUBLISH', channel, key)
    end
end

-- Whether there is room for another stream. Where there is none, the older half of those that have ended go, so that the next ones
-- find some.
local function has_room(most)
    if redis.call('HLEN', KEYS[1]) < most then
        return true
    end
    local ended = {}
    local fields = redis.call('HGETALL', KEYS[1])
    for at = 1, #fields, 2 do
        local touched = string.match(fields[at + 1], '^%d+ 1 %d+ %d+ (%d+)')
        if touched then
            ended[#ended + 1] = {name = fields[at], touched = tonumber(touched)}
        end
    end
    table.sort(ended, function(a, b) return a.touched < b.touched end)
    -- The key of the events of a stream ends with its name.
    local place = string.sub(KEYS[2], 1, -#ARGV[1] - 1)
    for at = 1, math.ceil(#ended / 2) do
        redis.call('HDEL', KEYS[1], ended[at].name)
        redis.call('DEL', place .. ended[at].name)
    end
    return #ended > 0
end

