-- Asks for one page, or for several in random order; prints what wrk counted as a line of JSON,
-- with the latencies by percentile, close enough for a histogram. Arguments: SEED CLOSE PATH...
local paths, seed, close = {}, 1, false

function init(args)
  seed = tonumber(args[1])
  close = args[2] == "close"
  for i = 3, #args do paths[#paths + 1] = args[i] end
  if close then wrk.headers["Connection"] = "close" end
  math.randomseed(seed + tonumber(tostring({}):match("0x(%x+)"), 16) % 100000)
  local made = {}
  for i, path in ipairs(paths) do made[i] = wrk.format("GET", path) end
  if #made > 1 then
    request = function() return made[math.random(#made)] end
  elseif #made == 1 then
    wrk.request = function() return made[1] end
    request = nil
  end
end

function done(summary, latency, requests)
  local errors, points = summary.errors, {}
  local function at(percent)
    points[#points + 1] = string.format("[%.4f,%d]", percent, latency:percentile(percent))
  end
  for i = 1, 198 do at(i / 2) end
  for i = 1, 18 do at(99 + i / 20) end
  for i = 1, 19 do at(99.9 + i / 200) end
  io.write(string.format(
    '\n{"requests":%d,"duration_us":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,' ..
    '"status":%d,"timeout":%d,"mean_us":%.3f,"stdev_us":%.3f,"max_us":%d,"percentiles":[%s]}\n',
    summary.requests, summary.duration, summary.bytes, errors.connect, errors.read,
    errors.write, errors.status, errors.timeout, latency.mean, latency.stdev, latency.max,
    table.concat(points, ",")))
end
