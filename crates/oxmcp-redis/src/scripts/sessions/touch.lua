-- KEYS: the session. ARGV: how long it lasts from now on. Returns the version.
local version = redis.call('HGET', KEYS[1], 'version')
if not version then
    return false
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return tonumber(version)
