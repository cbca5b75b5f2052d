"""The size of the pools of an Apache configuration: to fit the load, or as in a study."""

from __future__ import annotations

from .base import Setup

# P1, verbatim; MaxSpareThreads is the first source's.
P1 = """\
StartServers 8
ServerLimit 100
ThreadsPerChild 125
ThreadLimit 2000
MaxRequestWorkers 2000
MaxSpareThreads 1000
MinSpareThreads 75
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 50
"""

KEEP = """\
KeepAlive On
KeepAliveTimeout 600
MaxKeepAliveRequests 0
"""

# P3: the defaults of Apache 2.0.
P3_PREFORK = """\
StartServers 5
MinSpareServers 5
MaxSpareServers 10
MaxRequestWorkers 150
KeepAlive On
KeepAliveTimeout 15
MaxKeepAliveRequests 100
"""
P3_THREADS = """\
StartServers {started}
ThreadsPerChild 25
MinSpareThreads 25
MaxSpareThreads 75
MaxRequestWorkers 150
KeepAlive On
KeepAliveTimeout 15
MaxKeepAliveRequests 100
"""


def lines(shape: str, setup: Setup) -> str:
    """The directives that size the pools of a shape (prefork, worker, event, loop)."""
    if shape == "loop":
        return KEEP
    if setup.profile == "p1" and shape != "prefork":
        return P1
    if setup.profile in ("p3", "p3-prespawned"):
        started = 3 if setup.profile == "p3-prespawned" else 2
        return P3_PREFORK if shape == "prefork" else P3_THREADS.format(started=started)
    if setup.profile == "p4":
        return _prefork(setup.prespawned) if shape == "prefork" else _threads(shape, setup)
    # A few more than the load has connections: a server with none to spare closes kept ones.
    return _prefork(setup.clients + 8) if shape == "prefork" else _threads(shape, setup)


def _prefork(count: int) -> str:
    return (f"StartServers {count}\nMinSpareServers 1\nMaxSpareServers {count + 1}\n"
            f"ServerLimit {count}\nMaxRequestWorkers {count}\n{KEEP}")


def _threads(shape: str, setup: Setup) -> str:
    """One process per CPU, each with room for every client.

    Clients are not distributed evenly over processes, and a process whose workers are all busy
    closes kept connections, which load tools count as errors.
    """
    processes = len(setup.cpus)
    threads = min(512, setup.clients + 64)
    most = processes * threads
    more = "AsyncRequestWorkerFactor 400\n" if shape == "event" else ""
    if shape == "worker":
        processes = max(processes, -(-(setup.clients + 8) // threads))
        most = processes * threads
    limit = processes
    if setup.app_embedded:
        # An application's threads are those of a child.
        threads = setup.app_threads
        limit = -(-most // threads)
        most = limit * threads
    return (f"StartServers {processes}\nServerLimit {limit}\nThreadLimit {threads}\n"
            f"ThreadsPerChild {threads}\nMaxRequestWorkers {most}\nMinSpareThreads 1\n"
            f"MaxSpareThreads {most}\n{more}{KEEP}")
