-- Takes back what reserve.lua has counted for an attempt that succeeded.
--
-- KEYS: the gates. ARGV: for each, `everyMs`, or 0 to forget all its failures.
for i, key in ipairs(KEYS) do
  local everyMs = tonumber(ARGV[i])
  local reach = tonumber(redis.call('GET', key) or 0)
  if everyMs == 0 then
    redis.call('DEL', key)
  elseif reach > 0 then
    redis.call('SET', key, string.format('%.0f', reach - everyMs), 'KEEPTTL')
  end
end
return {}
