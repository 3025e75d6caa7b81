-- Charges requests of a caller: never more than `limit` in any `window` milliseconds, and never a
-- refusal below it. Amount 0 only reads.
--
-- KEYS: the caller. ARGV: limit (at most 1,000,000), amount, window.
-- Returns: 1 if the requests are allowed; how many more are; the milliseconds until the oldest
-- counted one leaves the window or, for a refusal, until as many are allowed.
--
-- The value is a list with one entry per millisecond in which requests were allowed, oldest first,
-- so a caller takes about ten bytes per request and at most `window` entries. An entry is
-- `time * COUNTS + total`: the time modulo TIMES, and the requests up to and including that
-- millisecond modulo COUNTS. Entry 0 is the total before the window; instead of a time, it has the
-- milliseconds that are added to the server's clock, because that clock may be set back.
local COUNTS, TIMES = 2 ^ 20, 2 ^ 32
local key = KEYS[1]
local limit, amount, window = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local function read(index)
  local entry = tonumber(redis.call('LINDEX', key, index))
  return math.floor(entry / COUNTS), entry % COUNTS
end
local function pack(time, total)
  return string.format('%.0f', time * COUNTS + total % COUNTS)
end

local time = redis.call('TIME')
local now = (time[1] * 1000 + math.floor(time[2] / 1000)) % TIMES
local last = redis.call('LLEN', key) - 1
local offset, before, newest, total = 0, 0, now, 0
if last > 0 then
  newest, total = read(-1)
  offset, before = read(0)
  now = (now + offset) % TIMES
  local behind = (newest - now) % TIMES
  if behind > 0 and behind < TIMES / 2 then
    now, offset = newest, (offset + behind) % TIMES
    redis.call('LSET', key, 0, pack(offset, before))
  end
  if (now - newest) % TIMES >= window then
    redis.call('DEL', key)
    last, before, total = -1, 0, 0
  end
end

local function age(index)
  return (now - read(index)) % TIMES
end
-- The first entry for which `holds`: it holds for the last one and for all from the result on.
local function search(holds)
  local low, high = 1, last
  if holds(1) then return 1 end
  while low < high do
    local middle = math.floor((low + high) / 2)
    if holds(middle) then high = middle else low = middle + 1 end
  end
  return low
end

if last > 0 then
  local oldest = search(function(index) return age(index) < window end)
  if oldest > 1 then
    local _, left = read(oldest - 1)
    before, last = left, last - oldest + 1
    redis.call('LTRIM', key, oldest - 1, -1)
    redis.call('LSET', key, 0, pack(offset, before))
  end
end

local count = (total - before) % COUNTS
local excess = count + amount - limit
if amount > 0 and excess > 0 then
  local waitMs = window
  if count > 0 then
    local leaving = math.min(excess, count)
    waitMs = window - age(search(function(index)
      local _, upTo = read(index)
      return (upTo - before) % COUNTS >= leaving
    end))
  end
  return {0, math.max(0, limit - count), waitMs}
end
if amount > 0 then
  if last < 1 then
    redis.call('RPUSH', key, pack(offset, 0), pack(now, amount))
    last = 1
  elseif newest == now then
    redis.call('LSET', key, -1, pack(now, total + amount))
  else
    redis.call('RPUSH', key, pack(now, total + amount))
  end
  redis.call('PEXPIRE', key, window)
end
return {1, math.max(0, limit - count - amount), last > 0 and window - age(1) or 0}
