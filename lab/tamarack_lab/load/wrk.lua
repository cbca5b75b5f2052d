-- Sends the heads that heads.py has written; prints what wrk counted as a line of JSON, with the
-- latencies in the buckets of histogram.py. Arguments: SEED CLIENTS count|fast FILE
local ffi = require("ffi")
local threads = {}
-- Requests by the number of their kind, responses by status. Globals: done() asks each thread.
asked, statuses = {}, {}

-- wrk's own statistics, of which Lua gets no more than a pointer: a count for each microsecond.
ffi.cdef("typedef struct { uint64_t count, limit, min, max, data[]; } lab_stats;")

function setup(thread)
  threads[#threads + 1] = thread
  thread:set("place", #threads)
end

function init(args)
  clients = tonumber(args[2])
  local own = tonumber(tostring({}):match("0x(%x+)"), 16) % 100000
  math.randomseed(tonumber(args[1]) + own)
  local heads = read_heads(args[4])
  if args[3] == "count" then response = counted end
  local kind, page = heads.kinds[1], heads.pages[1]
  if #heads.pages == 1 and #heads.kinds == 1 and not kind.template:find("{n}", 1, true) then
    constant(kind.made(page.path, page.host, page.path, 0))
    return
  end
  for i in ipairs(heads.kinds) do asked[i] = 0 end
  request = sender(heads)
end

-- A request that never changes: wrk makes it of these once, and sends it without asking here.
function constant(whole)
  local head, body = whole:match("^(.-\r\n)\r\n(.*)$")
  if body ~= "" then wrk.body = body end
  wrk.method, wrk.path = head:match("^(%S+) (%S+)")
  for name, value in head:gmatch("\r\n([^:\r\n]+): ([^\r\n]*)") do wrk.headers[name] = value end
end

function read_heads(name)
  local heads = { kinds = {}, pages = {}, in_turn = false }
  for line in io.lines(name) do
    local fields = {}
    for field in (line .. "\t"):gmatch("(.-)\t") do fields[#fields + 1] = field end
    if fields[1] == "order" then
      heads.in_turn = fields[2] == "turn"
    elseif fields[1] == "kind" then
      local template = fields[5]:gsub("\\r\\n", "\r\n")
      heads.kinds[#heads.kinds + 1] = {
        weight = tonumber(fields[2]), template = template,
        made = compile(template, ("x"):rep(tonumber(fields[6]))) }
    else
      local host = fields[3] ~= "" and fields[3] or wrk.headers["Host"]
      heads.pages[#heads.pages + 1] = { path = fields[2], host = host }
    end
  end
  return heads
end

-- A function of path, host, from and n that puts the request together in one step: gsub for each
-- request would take several times as long, which the load would lack.
function compile(template, body)
  local texts, parts = {}, {}
  for text, name in (template .. "{}"):gmatch("(.-){(%a*)}") do
    texts[#texts + 1] = text
    parts[#parts + 1] = "t[" .. #texts .. "]"
    if name ~= "" then parts[#parts + 1] = name end
  end
  if body ~= "" then
    texts[#texts + 1] = body
    parts[#parts + 1] = "t[" .. #texts .. "]"
  end
  local source = "local t = ... return function(path, host, from, n) return "
  return loadstring(source .. table.concat(parts, " .. ") .. " end")(texts)
end

-- Kinds by their weight at random, pages at random or in turn.
function sender(heads)
  local slots = {}
  for i, kind in ipairs(heads.kinds) do
    for _ = 1, kind.weight do slots[#slots + 1] = i end
  end
  local pages, kinds, many = heads.pages, heads.kinds, #heads.pages
  -- Two threads may have the same seed: each begins elsewhere all the same. 14 digits at most:
  -- from 15 on Lua writes a number in another way.
  local number = math.random(10000, 89999) * 1000000000 + place * 10000000
  local at = heads.in_turn and math.floor(many * (place - 1) / 8) or 0
  return function()
    number = number + 1
    local which = #slots > 1 and slots[math.random(#slots)] or 1
    asked[which] = asked[which] + 1
    at = heads.in_turn and at % many + 1 or math.random(many)
    local page = pages[at]
    return kinds[which].made(page.path, page.host, pages[math.random(many)].path, number)
  end
end

function counted(status)
  local name = tostring(status)
  statuses[name] = (statuses[name] or 0) + 1
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

-- Of all threads: requests by kind, responses by status.
function sums()
  local kinds, by_status, pairs_of = {}, {}, {}
  for _, thread in ipairs(threads) do
    for i, count in ipairs(thread:get("asked")) do kinds[i] = (kinds[i] or 0) + count end
    for status, count in pairs(thread:get("statuses")) do
      by_status[status] = (by_status[status] or 0) + count
    end
  end
  for status, count in pairs(by_status) do
    pairs_of[#pairs_of + 1] = string.format('"%s":%d', status, count)
  end
  return table.concat(kinds, ","), table.concat(pairs_of, ",")
end

function done(summary, latency, requests)
  local errors = summary.errors
  local stats = ffi.cast("lab_stats **", latency)[0]
  undo_correction(stats, summary)
  local histogram, mean, deviation, over, total = summed(stats)
  local kinds, by_status = sums()
  io.write(string.format(
    '\n{"requests":%d,"duration_us":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,' ..
    '"status":%d,"timeout":%d,"counted":%d,"mean_us":%.3f,"stdev_us":%.3f,"max_us":%d,' ..
    '"over_100ms":%d,"over_1s":%d,"over_10s":%d,"histogram":[%s],"asked":[%s],"statuses":{%s}}\n',
    summary.requests, summary.duration, summary.bytes, errors.connect, errors.read,
    errors.write, errors.status, errors.timeout, total, mean, deviation, tonumber(stats.max),
    over[1], over[2], over[3], histogram, kinds, by_status))
end
