"""Series of several processes as one: what is added, what is of the living only, and what the ended leave behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.parser import text_string_to_metric_families

from mcpfactory_runtime.server.observe.metrics import Metrics
from tests.machine import needs

pytestmark = needs("posix")

CHILD = """
import sys, pathlib
from prometheus_client import CollectorRegistry, Counter, Gauge
from mcpfactory_runtime.server.observe.metrics import Metrics
own = CollectorRegistry()
metrics = Metrics(own)
metrics.join(pathlib.Path(sys.argv[1]), sys.argv[2])
Counter("calls", "Calls.", ["tool"], registry=own).labels("a").inc(int(sys.argv[3]))
Gauge("open", "Open now.", registry=own).set(5)
metrics.keep(1)
print("written", flush=True)
sys.stdin.read()
"""


def other(folder: Path, name: str, calls: int) -> subprocess.Popen[str]:
    """Another process, which has counted; it lives until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), name, str(calls)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def joined(folder: Path, name: str) -> tuple[CollectorRegistry, Metrics]:
    """The series of this process, and what a scrape of it tells."""
    own = CollectorRegistry()
    metrics = Metrics(own)
    metrics.join(folder, name)
    return own, metrics


def series(metrics: Metrics) -> dict[str, float]:
    """One scrape, without the server's own series."""
    text = metrics.expose("", 1)[1].decode()
    return {
        f"{sample.name}{sorted(sample.labels.values())}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created") and not sample.name.startswith("mcp_server_")
    }


def test_counters_are_of_all_that_ever_were_and_gauges_of_those_that_live(tmp_path: Path) -> None:
    own, added = joined(tmp_path, "own")
    Counter("calls", "Calls.", ["tool"], registry=own).labels("a").inc(1)
    Gauge("open", "Open now.", registry=own).set(2)
    first, second = other(tmp_path, "first", 10), other(tmp_path, "second", 100)
    assert series(added) == {"calls_total['a']": 111, "open[]": 7 + 5}
    ended(first)
    assert series(added) == {"calls_total['a']": 111, "open[]": 7}
    ended(second)
    third = other(tmp_path, "third", 1000)  # which puts those that ended into one file
    assert sorted(file.name for file in tmp_path.glob("*.json")) == ["ended.json", "own.json", "third.json"]
    assert series(added) == {"calls_total['a']": 1111, "open[]": 7}
    ended(third)
    ended(other(tmp_path, "fourth", 10000))
    assert series(added) == {"calls_total['a']": 11111, "open[]": 2}
