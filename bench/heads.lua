-- As wrk.lua, and no two heads are alike: what a server does for each head anew is in the figure.
dofile(debug.getinfo(1, "S").source:match("@(.*)/") .. "/wrk.lua")

local number = os.time() * 1000000

function request()
  number = number + 1
  return string.format("GET %s HTTP/1.1\r\nHost: %s\r\nX-Request-ID: %d\r\n\r\n",
    wrk.path, wrk.headers["Host"], number)
end
