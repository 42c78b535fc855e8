-- KEYS: the session, the state of its streams. ARGV: its lifetime from now on. Returns the version, and the key of the principal's
-- sessions.
local session = redis.call('HMGET', KEYS[1], 'version', 'principal')
if not session[1] then
    return false
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1], 'GT')
return {tonumber(session[1]), session[2] or ''}
