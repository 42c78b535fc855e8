-- The time of Redis in milliseconds since 1970, and keys that expire with their last entry.
local seconds = redis.call('TIME')
local now = seconds[1] * 1000 + math.floor(seconds[2] / 1000)

local function text(number)
    return string.format('%.0f', number)
end

local function keep_until(key, time)
    if redis.call('PTTL', key) < 0 then
        redis.call('PEXPIREAT', key, text(time))
    else
        redis.call('PEXPIREAT', key, text(time), 'GT')
    end
end

