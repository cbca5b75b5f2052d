"""Writes example/results.json: a small invented run of every kind of experiment.

The figures are made up; the report's tests draw from them. Run it from lab/ with the lab's Python.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tamarack_lab.results import (
    Cell, Environment, Experiment, Latency, LoadSide, NoiseFloor, Published, Ratio, Results,
    Sample, Value, write)

CHANCE = random.Random(4)
BEGAN = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
LABELS = {"apache-prefork": "Apache prefork", "apache-worker": "Apache worker",
          "apache-event": "Apache event", "nginx": "nginx", "tamarack-event": "Tamarack event",
          "naive": "naive C server", "webfs": "webfs (one process)", "gunicorn": "gunicorn",
          "tamarack-wsgi": "Tamarack mod_wsgi"}
COST_US = {"apache-prefork": 48.0, "apache-worker": 55.0, "apache-event": 51.0, "nginx": 12.0,
           "tamarack-event": 8.0, "naive": 90.0, "webfs": 30.0, "gunicorn": 900.0}


def latency(mean_us: float, count: int, corrected: bool = False) -> Latency:
    values = sorted(CHANCE.lognormvariate(0, 0.5) * mean_us for _ in range(100))
    pick = lambda share: values[min(99, int(share * 100))]  # noqa: E731
    buckets: dict[int, int] = {}
    for value in values:
        bucket = int(value * 1.05) // 20 * 20 + 20
        buckets[bucket] = buckets.get(bucket, 0) + max(1, count // 100)
    return Latency(count=count, mean_us=sum(values) / 100, stdev_us=mean_us * 0.5,
                   max_us=values[-1] * 3, histogram=sorted(buckets.items()), corrected=corrected,
                   percentiles_us={"50": pick(0.5), "90": pick(0.9), "99": pick(0.99),
                                   "99.9": pick(0.999)},
                   over_100ms=0.01 if mean_us > 5000 else 0.0, over_1s=0.0, over_10s=0.0)


def sample(start: int, cost_us: float, clients: int = 64, cpus: int = 1,
           timeline: bool = False) -> Sample:
    cost = cost_us * CHANCE.gauss(1, 0.02)
    rate = cpus * 1e6 / cost
    points = None
    if timeline:
        points = sorted((CHANCE.uniform(0, 400), CHANCE.choice((0.4, 3.1, 40.0, 1000.0)) *
                         CHANCE.gauss(1, 0.05)) for _ in range(200))
    return Sample(
        start=start, order=start * 7, at=BEGAN + timedelta(seconds=start * 9), duration_s=2.0,
        requests=int(rate * 2), requests_per_s=rate, cpu_us_per_request=cost,
        bytes_per_s=rate * 1300, latency=latency(clients * cost, int(rate * 2)),
        migrations=CHANCE.randrange(9), context_switches_voluntary=CHANCE.randrange(4000),
        context_switches_involuntary=CHANCE.randrange(40), pss_bytes=30 << 20,
        rss_bytes=40 << 20, server_busy=0.99, load_busy=0.6, timeline_ms=points)


def cell(server: str, axes: dict[str, Value], factor: float = 1.0, reason: str = "",
         **more: int | bool) -> Cell:
    key = " ".join([f"server={server}", *(f"{name}={value}" for name, value in axes.items())])
    cost = COST_US.get(server, 1.0) * factor
    samples = [] if reason else [
        sample(start, cost, int(more.get("clients", 64)), int(more.get("cpus", 1)),
               bool(more.get("timeline", False))) for start in range(3)]
    return Cell(key=key, server=server, label=LABELS[server], axes=axes, tool="wrk",
                status="marked" if reason else "ok", reason=reason, samples=samples)


def floor(of: Cell) -> NoiseFloor:
    values = [one.cpu_us_per_request or 0.0 for one in of.samples]
    return NoiseFloor(key=of.key, metric="cpu_us_per_request", first=values,
                      second=[value * CHANCE.gauss(1, 0.015) for value in values])


def experiment(name: str, title: str, x: str | None, cells: list[Cell],
               published: list[Published] | None = None,
               ratios: list[Ratio] | None = None) -> Experiment:
    return Experiment(
        name=name, title=title, about=f"{title}, invented figures.", x=x,
        axes=list(cells[0].axes), headline="cpu_us_per_request",
        metrics=["requests_per_s", "latency_median_us", "latency_p99_us", "latency_max_us"],
        planned=len(cells), cells=cells, floors=[floor(cells[0])], published=published or [],
        ratios=ratios or [], left_out=["concurrency 150: --quick runs fewer levels"])


def p1() -> Experiment:
    cells = [cell(server, {"scheme": scheme, "log": log},
                  (1.3 if scheme == "https" else 1) * (1.05 if log == "buffered" else 1))
             for server in ("apache-event", "nginx", "tamarack-event")
             for scheme in ("http", "https") for log in ("off", "buffered")]
    machine = "Yitian 710, 8 vCPU"
    figures = {("http", "off"): 243138.93, ("https", "off"): 172087.59,
               ("http", "buffered"): 234099.50, ("https", "buffered"): 163650.42}
    return experiment(
        "p1-keepalive", "Keep-alive, TLS and the log", None, cells,
        [Published(study="P1", label=f"{scheme}, log {log}", metric="requests_per_s",
                   cell={"server": "apache-event", "scheme": scheme, "log": log}, value=value,
                   machine=machine) for (scheme, log), value in figures.items()],
        [Ratio(study="P1", label="HTTPS costs", form="cost", metric="requests_per_s",
               of={"scheme": "https", "log": "off"}, to={"scheme": "http", "log": "off"},
               published={machine: 0.292, "Xeon gen 3, 8 vCPU": 0.220})])


def p3() -> Experiment:
    servers = ("apache-prefork", "apache-worker", "apache-event", "webfs", "tamarack-event")
    cells = [cell(server, {"scenario": scenario, "concurrency": clients}, 1 + clients / 300,
                  clients=clients)
             for server in servers for scenario in ("1k", "mixed") for clients in (1, 8, 64, 150)]
    cells[-1] = cell("tamarack-event", dict(cells[-1].axes),
                     reason="2 errors in 3 starts: read 2")
    return experiment("p3-concurrency", "Throughput against concurrency", "concurrency", cells)


def p4() -> Experiment:
    cells = [cell(server, {"clients": 25, "cpus": cpus}, 1 + cpus / 40, cpus=cpus)
             for server in ("apache-prefork", "apache-event", "gunicorn") for cpus in (1, 2)]
    cells += [cell("tamarack-wsgi", {"clients": 25, "cpus": cpus},
                   reason="absent: Tamarack has no WSGI of its own yet") for cpus in (1, 2)]
    return experiment("p4-cores", "A dynamic page on more and more CPUs", "cpus", cells,
                      ratios=[Ratio(study="P4", label="eight CPUs give", form="times",
                                    metric="requests_per_s", of={"clients": 25, "cpus": 2},
                                    to={"clients": 25, "cpus": 1}, published={})])


def p5() -> Experiment:
    return experiment("p5-naive", "Against a naive C server", None,
                      [cell(server, {"users": 50}, timeline=True)
                       for server in ("naive", "apache-prefork", "tamarack-event")])


def main() -> None:
    """Writes the file beside this one."""
    environment = Environment(
        cpu="Example CPU @ 2.50GHz", cpus=2, cores=2, governor="unknown", mhz_max=2500.0,
        memory_bytes=24 << 30, mitigations={"spectre_v2": "Mitigation: Enhanced IBRS"},
        kernel="6.1", system="Debian GNU/Linux 12 (bookworm)", virtual="kvm",
        sysctls={"net.core.somaxconn": "4096"}, limits={"nofile": 1048576},
        servers={"apache-event": "Apache/2.4.71 (Debian)", "nginx": "nginx/1.22.1"},
        flags={"nginx": "--with-cc-opt='-O2'"}, tools={"wrk": "wrk 4.1.0"},
        commit="0123456789ab", lab="0.1.0")
    results = Results(
        started=BEGAN, finished=BEGAN + timedelta(minutes=9),
        command=["p1-keepalive", "p3-concurrency", "p4-cores", "p5-naive", "--quick"],
        quick=True, starts=3, seconds=2.0,
        load=LoadSide(kind="mask", server_cpus=[0], load_cpus=[1],
                      text="on the same machine, server on CPU 0, load on CPU 1"),
        headline_reason="fewer than 4 CPUs: the load's CPU limits requests per second",
        environment=environment, experiments=[p1(), p3(), p4(), p5()],
        notes=["tamarack-wsgi: absent"])
    folder = Path(__file__).parent / "example"
    folder.mkdir(exist_ok=True)
    write(results, folder)


if __name__ == "__main__":
    main()
