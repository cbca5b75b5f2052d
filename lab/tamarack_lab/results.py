"""results.json: what a run measured. The engine writes it, the report and --compare read it.

Units stand in the names: `_us` microseconds, `_s` seconds, `_bytes` bytes. A cell is one server
under one load; a sample is one fresh start of that server. Samples are raw: medians, intervals and
ratios are worked out by whoever reads them, so that a later reader may do it better.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

FORMAT = 1

# An axis value: the shape's name, the number of clients, of CPUs, the file's size…
Value = str | int | float
Metric = Literal[
    "requests_per_s", "cpu_us_per_request", "own_cpu_us_per_request", "latency_mean_us",
    "latency_stdev_us", "latency_median_us", "latency_p99_us", "latency_p999_us",
    "latency_max_us", "pss_bytes", "interpreters", "interpreters_per_cpu",
    "bytes_per_connection", "throttled_share",
    "migrations_per_100k", "context_switches_per_request",
    "share_over_100ms", "share_over_1s", "share_over_10s"]


class Model(BaseModel):
    """Unknown keys are errors: a typo in a file never goes unseen."""

    model_config = ConfigDict(extra="forbid")


class Latency(Model):
    """Response times of one sample."""

    count: int
    mean_us: float
    stdev_us: float | None = None
    max_us: float
    # "50", "90", "99", "99.9"; always these four.
    percentiles_us: dict[str, float]
    # [upper bound of the bucket in µs, count], ascending, empty buckets left out; None where the
    # tool reports percentiles only. Two histograms merge by adding counts.
    histogram: list[tuple[int, int]] | None = None
    # Whether a request's time counts from when it was due (open loop), not from when it was sent.
    corrected: bool = False
    # Shares of the answers that took over 0.1, 1 and 10 s; None where unknown.
    over_100ms: float | None = None
    over_1s: float | None = None
    over_10s: float | None = None


class Sample(Model):
    """One fresh start of the cell's server: warm-up, then this."""

    # 0-based number of the fresh start, and its place in the shuffled order of the whole run.
    start: int
    order: int
    at: datetime
    duration_s: float
    requests: int
    # Refused, reset, timed out, or answered with another status than expected.
    errors: int = 0
    wrong_bytes: int = 0
    # What went wrong, in the load tool's words: "read 3, timeout 1".
    complaint: str = ""
    # Responses of the warm-up by status, where the traffic means others than 200; with each
    # status that the load tool counted one by one.
    statuses: dict[int, int] = Field(default_factory=dict)
    # None of idle connections, which the lab itself opens, one after the other.
    requests_per_s: float | None
    # CPU time of the server's whole process family; None when it runs where /proc can't be read.
    cpu_us_per_request: float | None = None
    # The same without processes that started or ended in the measured time, such as CGI scripts.
    own_cpu_us_per_request: float | None = None
    bytes_per_s: float | None = None
    # Share of the time of the server's and the load's CPUs that a hypervisor gave to others.
    steal: float | None = None
    latency: Latency | None = None
    # Of the server's threads, during the measured time.
    migrations: int | None = None
    # Share of the quota's periods in which its time was used up; None without a quota.
    throttled: float | None = None
    context_switches_voluntary: int | None = None
    context_switches_involuntary: int | None = None
    # Of the whole family after the load, or with the idle connections open.
    pss_bytes: int | None = None
    rss_bytes: int | None = None
    # Applications only: the processes with an interpreter in memory, after the load.
    interpreters: int | None = None
    # How many CPUs the server had; None in older results.
    server_cpus: int | None = None
    # idle connections only: growth of the proportional memory.
    bytes_per_connection: float | None = None
    # Busy shares (0–1) of the server's CPUs and of the load's; a load at 1.0 was the limit itself.
    server_busy: float | None = None
    load_busy: float | None = None
    # p5: [ms since the test began, response time in ms] per request, for the scatter.
    timeline_ms: list[tuple[float, float]] | None = None


class Cell(Model):
    """One server under one load. A marked cell has a reason and is never averaged in."""

    # Unique in its experiment and stable between runs: "server=nginx scenario=small".
    key: str
    # An adapter's name: "apache-event", "nginx", "tamarack-loop", "naive"…
    server: str
    # The server for people: "Apache event".
    label: str
    # All axes beside the server, in the experiment's order; numbers stay numbers.
    axes: dict[str, Value]
    tool: str
    # The load in words: "wrk, 64 connections, one request repeated"; older results have none.
    load: str = ""
    status: Literal["ok", "marked"]
    # For a marked cell: missing server, does not start, errors, wrong bytes… One line.
    reason: str = ""
    samples: list[Sample] = Field(default_factory=list)


class NoiseFloor(Model):
    """The A/A run: one cell measured twice over, interleaved with all others.

    `first` and `second` hold one value per fresh start. What differs between them is noise.
    """

    key: str
    metric: Metric
    first: list[float]
    second: list[float]


class Published(Model):
    """A published figure, and the cells it belongs to."""

    # "P1" … "P5", the rows of the study table.
    study: str
    label: str
    # The cell's server and axes that it is compared with; a subset is enough if it is unique.
    cell: dict[str, Value]
    metric: Metric
    value: float
    # The machine it was measured on.
    machine: str


class Ratio(Model):
    """A ratio that was published, to be set beside the measured one.

    cost: 1 - of/to ("HTTPS costs 23 %"); times: of/to ("8 cores give 6.3 times one"); gain:
    of/to - 1 ("pinning gives +20 %").
    """

    study: str
    # With the verb, for a sentence: "HTTPS costs", "eight CPUs give".
    label: str
    form: Literal["cost", "times", "gain"]
    metric: Metric
    # Cells as in Published; `server` may be left out: then the ratio is taken for each server.
    of: dict[str, Value]
    to: dict[str, Value]
    # Published values in the form's own terms (0.29 for 29 %), by machine; may be empty.
    published: dict[str, float] = Field(default_factory=dict)


class Target(Model):
    """What is to be reached, judged by the median over the rounds of one interleaved run.

    ratio: of/to of each round; difference: of - to of each round; value: `of` alone.
    """

    form: Literal["ratio", "difference", "value"] = "ratio"
    metric: Metric = "cpu_us_per_request"
    # Cells as in Published: each names one.
    of: dict[str, Value]
    to: dict[str, Value] = Field(default_factory=dict)
    # What `of` takes more than this one counts, not the whole.
    above: dict[str, Value] = Field(default_factory=dict)
    # One of the two.
    most: float | None = None
    least: float | None = None

    @model_validator(mode="after")
    def _has_one_limit(self) -> Target:
        if (self.most is None) == (self.least is None):
            raise PydanticCustomError("limit", "a target has `most` or `least`")
        if (self.form == "value") != (not self.to):
            raise PydanticCustomError("limit", "a target without `to` has the form value")
        return self


class Experiment(Model):
    """All cells of one experiment."""

    # As on the command line: "p1-keepalive".
    name: str
    title: str
    about: str
    # The axis that plots run along ("concurrency", "cpus"); None: bars or boxes by server.
    x: str | None = None
    # Names of the axes, in their order, without the server.
    axes: list[str]
    # The metric of tables and plots: what the lab chose for this machine, see headline_reason.
    headline: Metric
    # Further metrics worth a plot or a column.
    metrics: list[Metric]
    # Of measured load per start; None in older results.
    seconds: float | None = None
    # What the cells are, server by server and axis by axis, was planned so: len(cells) may be
    # smaller while a run is unfinished.
    planned: int
    cells: list[Cell]
    floors: list[NoiseFloor] = Field(default_factory=list)
    published: list[Published] = Field(default_factory=list)
    ratios: list[Ratio] = Field(default_factory=list)
    targets: list[Target] = Field(default_factory=list)
    # Scenarios that the README shows, in the file's order; empty: all.
    quoted: list[str] = Field(default_factory=list)
    # Levels, tools, servers that this run left out, a line each, with the reason.
    left_out: list[str] = Field(default_factory=list)


class LoadSide(Model):
    """Where the load came from."""

    # mask: other CPUs of the same machine; hosts: other machines, over SSH; netns: other network
    # namespaces of the same machine.
    kind: Literal["mask", "hosts", "netns"]
    server_cpus: list[int]
    # Empty with hosts.
    load_cpus: list[int]
    hosts: list[str] = Field(default_factory=list)
    # For people, one sentence.
    text: str


class Environment(Model):
    """The machine and the programs that the figures belong to."""

    cpu: str
    cpus: int
    cores: int
    governor: str
    mhz_max: float | None
    memory_bytes: int
    mitigations: dict[str, str]
    kernel: str
    system: str
    virtual: str
    sysctls: dict[str, str]
    limits: dict[str, int]
    # Adapter name → what the program calls itself.
    servers: dict[str, str]
    # Adapter name → compile flags, where the program tells them.
    flags: dict[str, str]
    # Adapter name → TLS version and cipher, as it agreed on them with the lab's OpenSSL.
    tls: dict[str, str] = Field(default_factory=dict)
    tools: dict[str, str]
    commit: str
    lab: str


class Results(Model):
    """A whole results.json."""

    format: int = FORMAT
    started: datetime
    # None while the run is unfinished or was interrupted.
    finished: datetime | None = None
    # One argument per word, as it was called; of absolute paths the name.
    command: list[str]
    quick: bool
    # Fresh starts per cell, seconds per measured load.
    starts: int
    seconds: float
    load: LoadSide
    # Why the headline is CPU time per request (fewer than 4 CPUs), or why requests/s.
    headline_reason: str
    environment: Environment
    experiments: list[Experiment]
    # Lines that the run said on the way: a missing tool, a port in use…
    notes: list[str] = Field(default_factory=list)


def read(path: Path) -> Results:
    """Reads a results.json; `path` may be its folder. ValueError says what is wrong, where."""
    file = path / "results.json" if path.is_dir() else path
    return Results.model_validate_json(file.read_bytes())


def write(results: Results, folder: Path) -> Path:
    """Writes results.json whole or not at all; returns its path."""
    file = folder / "results.json"
    fresh = file.with_suffix(".json.new")
    fresh.write_text(results.model_dump_json(exclude_defaults=True) + "\n")
    fresh.replace(file)
    return file
