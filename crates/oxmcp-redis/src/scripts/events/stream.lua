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

-- Whether there is room for another stream: those that have ended and are too old make some.
local function has_room(most, age)
    if redis.call('HLEN', KEYS[1]) < most then
        return true
    end
    for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
        local stream = name ~= ':watched' and read(name)
        if stream and stream.ended == 1 and stream.touched + age <= now then
            redis.call('HDEL', KEYS[1], name)
        end
    end
    return redis.call('HLEN', KEYS[1]) < most
end

