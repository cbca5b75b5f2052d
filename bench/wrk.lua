-- Prints what wrk counted as one line of JSON, so that nobody parses its prose. Argument: CONNECTIONS.
local ffi = require("ffi")
local threads = {}

-- wrk's own statistics, of which Lua gets no more than a pointer: a count for each microsecond.
ffi.cdef("typedef struct { uint64_t count, limit, min, max, data[]; } bench_stats;")

function setup(thread)
  threads[#threads + 1] = thread
end

function init(args)
  connections = tonumber(args[1])
end

-- Before done() wrk adds an invented answer for each mean interval that an answer was longer
-- (stats_correct in its stats.c), which flatters whoever answers most and stalls now and then.
-- From the longest downwards each count is true once what those above it added is taken away.
local function undo_correction(stats, summary)
  local rounds = math.floor(summary.requests / tonumber(threads[1]:get("connections")))
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

local function percentile(stats, percent, total)
  local seen = 0
  for latency = 0, tonumber(stats.max) do
    seen = seen + tonumber(stats.data[latency])
    if seen >= total * percent / 100 then return latency end
  end
  return 0
end

function done(summary, latency, requests)
  local errors = summary.errors
  local stats = ffi.cast("bench_stats **", latency)[0]
  undo_correction(stats, summary)
  local counted = 0
  for us = 0, tonumber(stats.max) do counted = counted + tonumber(stats.data[us]) end
  io.write(string.format(
    '\n{"requests":%d,"duration_us":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,' ..
    '"status":%d,"timeout":%d,"counted":%d,"p50_us":%d,"p99_us":%d}\n',
    summary.requests, summary.duration, summary.bytes, errors.connect, errors.read,
    errors.write, errors.status, errors.timeout, counted,
    percentile(stats, 50, counted), percentile(stats, 99, counted)))
end
