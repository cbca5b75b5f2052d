-- Asks for one page, or for several in random order; prints what wrk counted as a line of JSON,
-- with the latencies in the buckets of histogram.py. Arguments: SEED keep|close CLIENTS
-- alike|unlike PATH...
local ffi = require("ffi")
local threads = {}

-- wrk's own statistics, of which Lua gets no more than a pointer: a count for each microsecond.
ffi.cdef("typedef struct { uint64_t count, limit, min, max, data[]; } lab_stats;")

function setup(thread)
  threads[#threads + 1] = thread
  thread:set("place", #threads)
end

function init(args)
  local paths, close, unlike = {}, args[2] == "close", args[4] == "unlike"
  clients = tonumber(args[3])
  for i = 5, #args do paths[#paths + 1] = args[i] end
  if close then wrk.headers["Connection"] = "close" end
  local own = tonumber(tostring({}):match("0x(%x+)"), 16) % 100000
  math.randomseed(tonumber(args[1]) + own)
  if unlike then
    request = different(paths, close)
    return
  end
  -- One page is the URL's: wrk then sends it without asking here.
  if #paths < 2 then return end
  local made = {}
  for i, path in ipairs(paths) do made[i] = wrk.format("GET", path) end
  request = function() return made[math.random(#made)] end
end

-- No two heads are alike, on all connections of all threads. Put together by hand: wrk.format
-- takes twice the time, which the load would lack.
function different(paths, close)
  -- Two threads may have the same seed: each begins elsewhere all the same.
  local number = math.random(1000000) * 1000000000 + place * 10000000
  local last = close and "\r\nConnection: close\r\n\r\n" or "\r\n\r\n"
  local first = {}
  for i, path in ipairs(paths) do
    first[i] = string.format("GET %s HTTP/1.1\r\nHost: %s\r\nX-Request-ID: ", path,
      wrk.headers["Host"])
  end
  return function()
    number = number + 1
    return string.format("%s%d%s", first[#first > 1 and math.random(#first) or 1], number, last)
  end
end

-- Before done() wrk adds an invented answer for each mean interval that an answer was longer
-- (stats_correct in its stats.c): right for a load at a steady rate, which a closed loop is not.
-- From the longest downwards each count is true once what those above it added is taken away.
local function undo_correction(stats, summary)
  local rounds = math.floor(summary.requests / tonumber(threads[1]:get("clients")))
  if rounds == 0 then return end
  local interval = math.floor(summary.duration / rounds)
  for latency = tonumber(stats.max), interval * 2, -1 do
    local count, below = stats.data[latency], latency - interval
    while count > 0 and below > interval do
      stats.data[below] = stats.data[below] - count
      below = below - interval
    end
  end
end

-- The bound of histogram.py's bucket for a latency.
local function bound_of(latency)
  local step = 1
  while latency > 128 * step do step = step * 2 end
  return math.max(1, math.ceil(latency / step) * step)
end

-- Pairs of bound and count as JSON, mean, deviation, and how many are over 0.1, 1 and 10 s.
local function summed(stats)
  local buckets, bound, held, total, sum, squares = {}, 0, 0, 0, 0, 0
  local over = { 0, 0, 0 }
  local function flush()
    if held > 0 then buckets[#buckets + 1] = string.format("[%d,%d]", bound, held) end
    held = 0
  end
  for latency = 0, tonumber(stats.max) do
    local count = tonumber(stats.data[latency])
    if count > 0 then
      if latency > bound then
        flush()
        bound = bound_of(latency)
      end
      held, total, sum = held + count, total + count, sum + latency * count
      squares = squares + latency * latency * count
      for i = 1, 3 do
        if latency > 10000 * 10 ^ i then over[i] = over[i] + count end
      end
    end
  end
  flush()
  local mean = total > 0 and sum / total or 0
  local variance = total > 0 and squares / total - mean * mean or 0
  return table.concat(buckets, ","), mean, math.sqrt(math.max(0, variance)), over, total
end

function done(summary, latency, requests)
  local errors = summary.errors
  local stats = ffi.cast("lab_stats **", latency)[0]
  undo_correction(stats, summary)
  local histogram, mean, deviation, over, total = summed(stats)
  io.write(string.format(
    '\n{"requests":%d,"duration_us":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,' ..
    '"status":%d,"timeout":%d,"counted":%d,"mean_us":%.3f,"stdev_us":%.3f,"max_us":%d,' ..
    '"over_100ms":%d,"over_1s":%d,"over_10s":%d,"histogram":[%s]}\n',
    summary.requests, summary.duration, summary.bytes, errors.connect, errors.read,
    errors.write, errors.status, errors.timeout, total, mean, deviation, tonumber(stats.max),
    over[1], over[2], over[3], histogram))
end
