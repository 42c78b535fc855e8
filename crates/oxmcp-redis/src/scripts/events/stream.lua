-- The state of a stream is one field in the hash of its session: the index of its last event, whether it has ended (1), the epoch of
-- its newest lease and the end of that lease, the time of the last write, and the number of stored bytes.
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

-- Notifies waiters, if there are any.
local function wake(channel, key)
    local watched = redis.call('HGET', KEYS[1], ':watched')
    if watched and tonumber(watched) > now then
        redis.call('PUBLISH', channel, key)
    end
end

-- Keeps the state of the streams as long as their session, and at least as long as their events; for a fixed time if the session is
-- not in this store.
local function keep(session, age, age_alone)
    local left = redis.call('PTTL', session)
    local lasts = left < 0 and age_alone or math.max(left, tonumber(age))
    redis.call('PEXPIRE', KEYS[1], lasts)
end

-- Whether there is space for another stream. At every 64th stream, and if the limit is reached, ended streams whose events have
-- expired are removed. If that is not enough, the older half of the ended streams is removed, so that the next ones find space, too.
local function has_room(most, age)
    local count = redis.call('HLEN', KEYS[1])
    if count == 0 or (count < most and count % 64 > 0) then
        return true
    end
    -- The key of the events of a stream ends with its name.
    local place = string.sub(KEYS[2], 1, -#ARGV[1] - 1)
    local function forget(name)
        redis.call('HDEL', KEYS[1], name)
        redis.call('DEL', place .. name)
        count = count - 1
    end
    local ended = {}
    local fields = redis.call('HGETALL', KEYS[1])
    for at = 1, #fields, 2 do
        local touched = tonumber(string.match(fields[at + 1], '^%d+ 1 %d+ %d+ (%d+)'))
        if touched and touched + age < now then
            forget(fields[at])
        elseif touched then
            ended[#ended + 1] = {name = fields[at], touched = touched}
        end
    end
    if count < most then
        return true
    end
    table.sort(ended, function(a, b) return a.touched < b.touched end)
    for at = 1, math.ceil(#ended / 2) do
        forget(ended[at].name)
    end
    return #ended > 0
end
