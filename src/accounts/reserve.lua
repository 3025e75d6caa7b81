-- Counts one failure at each gate, or none if one of them is closed. As in throttle.ts, a gate has
-- the time up to which its failures reach, on the server's clock.
--
-- KEYS: the gates. ARGV: `burst` and `everyMs` of each.
-- Returns: the milliseconds to wait, 0 if the failures are counted; then the numbers of the gates
-- that this has closed.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local waitMs, reaches = 0, {}
for i, key in ipairs(KEYS) do
  local burst, everyMs = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  -- Further ahead only if the server's clock was set back.
  local reach = math.min(tonumber(redis.call('GET', key) or 0), now + burst * everyMs)
  reaches[i] = math.max(reach, now) + everyMs
  waitMs = math.max(waitMs, reach - (burst - 1) * everyMs - now)
end
if waitMs > 0 then return {waitMs} end
local reply = {0}
for i, key in ipairs(KEYS) do
  local burst, everyMs = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local reach = string.format('%.0f', reaches[i])
  redis.call('SET', key, reach, 'PX', reaches[i] - now)
  if reaches[i] > now + (burst - 1) * everyMs then reply[#reply + 1] = i - 1 end
end
return reply
