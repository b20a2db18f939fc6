-- Scripts of redis.py. Each begins with a line that contains its name.

--- write
-- KEYS: space, order. ARGV: milliseconds, the condition (kind, key, value), then verb, key and value of each change.
local space, order = KEYS[1], KEYS[2]
if ARGV[2] ~= '' then
  local held = redis.call('HGET', space, ARGV[3])
  if ARGV[2] == 'missing' then
    if held then return 0 end
  elseif held ~= ARGV[4] then return 0 end
end
for at = 5, #ARGV, 3 do
  local verb, key, value = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if verb == 'put' then
    redis.call('HSET', space, key, value)
    redis.call('ZADD', order, 0, key)
  elseif verb == 'remove' then
    redis.call('HDEL', space, key)
    redis.call('ZREM', order, key)
  else
    for _, one in ipairs(redis.call('ZRANGEBYLEX', order, '[' .. key, '(' .. key .. '\255')) do
      redis.call('HDEL', space, one)
      redis.call('ZREM', order, one)
    end
  end
end
local now = redis.call('TIME')
local ends = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + ARGV[1])
redis.call('PEXPIREAT', space, ends) -- PEXPIRE would read the clock for each key, so one key could expire earlier
redis.call('PEXPIREAT', order, ends)
return 1

--- scan
-- KEYS: space, order. ARGV: first and last key, and the limit.
local keys = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
local found = {}
for at, key in ipairs(keys) do
  found[2 * at - 1] = key
  found[2 * at] = redis.call('HGET', KEYS[1], key)
end
return found

--- send
-- KEYS: mailbox. ARGV: milliseconds, message.
redis.call('RPUSH', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
