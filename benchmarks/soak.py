"""A soak: our HTTP server for minutes at 80 % of the rate that was measured just before; latencies, memory, errors.

wrk keeps so many connections, each of which pauses for ten milliseconds between an answer and its next request, that the
wanted rate results; what rate it was is printed.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

from benchmarks import http, report
from benchmarks.wire import resident

__all__ = ["run"]

SERVER = Path(__file__).resolve().parent / "peers/servers/ours.py"
SHARE = 0.8
PAUSE = 10  # ms
PERCENTILES = (50, 90, 99, 99.9, 99.99)
SAMPLES = 60

SCRIPT = """
delay = function() return {pause} end
done = function(summary, latency, requests)
  for _, p in ipairs({{{percentiles}}}) do io.write(string.format("P %g %f\\n", p, latency:percentile(p) / 1000)) end
  io.write(string.format("MAX %f\\n", latency.max / 1000))
  local e = summary.errors
  io.write(string.format("COUNT %d %d\\n", summary.requests, e.status + e.timeout + e.connect + e.read + e.write))
  io.write(string.format("RATE %f\\n", summary.requests / summary.duration * 1e6))
end
"""


def run(minutes: float) -> None:
    """Prints what happened and saves it in benchmarks/results/soak.json; exits with an error when a call failed."""
    with http.serving([sys.executable, str(SERVER)]) as served:
        most = max(http.calls_per_second(served.url, 32, modern=True, seconds=5) for _ in range(3))
        connections = _connections(served.url, most)
        print(
            f"measured maximum {most:,.0f} calls/s; soak at {SHARE:.0%} of it with {connections} connections",
            flush=True,
        )
        memory: list[float] = []
        over = threading.Event()
        watch = threading.Thread(target=_watch, args=(served.pid, memory, minutes * 60 / SAMPLES, over))
        watch.start()
        try:
            found = _load(served.url, connections, minutes * 60)
        finally:
            over.set()
            watch.join()
    found |= {"maximum": most, "connections": connections, "minutes": minutes}
    _print(found, memory)
    report.RESULTS.mkdir(exist_ok=True)
    saved = {"machine": report.facts(), **found, "memory, MiB": memory}
    (report.RESULTS / "soak.json").write_text(json.dumps(saved, indent=1))
    if found["errors"]:
        raise SystemExit("error: calls failed during the soak")


def _connections(url: str, most: float) -> int:
    """How many connections give the wanted rate: found by trying, as an answer takes longer the more there are."""
    count = round(SHARE * most * PAUSE / 1000)
    for _ in range(4):
        rate = _load(url, count, 3)["rate"]
        count = max(1, round(count * SHARE * most / rate))
    return count


def _load(url: str, connections: int, seconds: float) -> dict[str, float]:
    script = SCRIPT.format(pause=PAUSE, percentiles=", ".join(map(str, PERCENTILES)))
    printed = http.wrk(url, connections, seconds, script, modern=True)
    found = {f"p{p}": float(value) for p, value in re.findall(r"^P (\S+) (\S+)", printed, re.M)}
    calls, errors = map(int, re.findall(r"^COUNT (\d+) (\d+)", printed, re.M)[0])
    rate, longest = (float(re.findall(rf"^{name} (\S+)", printed, re.M)[0]) for name in ("RATE", "MAX"))
    return {**found, "max": longest, "calls": calls, "errors": errors, "rate": rate}


def _watch(pid: int, memory: list[float], every: float, over: threading.Event) -> None:
    while not over.wait(every):
        memory.append(round(resident(pid) / 1024, 1))


def _print(found: dict[str, float], memory: list[float]) -> None:
    print(
        f"{found['calls']:,.0f} calls in {found['minutes']:g} minutes, {found['rate']:,.0f} a second "
        f"({found['rate'] / found['maximum']:.0%} of the maximum), {found['errors']:.0f} errors"
    )
    print(
        "latency: " + ", ".join(f"{name} {found[name]:.2f} ms" for name in (*(f"p{p:g}" for p in PERCENTILES), "max"))
    )
    tenth = max(1, len(memory) // 10)
    print("memory, MiB: " + " ".join(f"{value:.1f}" for value in memory[::tenth]))
