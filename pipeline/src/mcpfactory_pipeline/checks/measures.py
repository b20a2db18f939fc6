"""What a server costs to run: measured and reported. Judged only where policy sets limits (docs/reference/pipeline.md)."""

from __future__ import annotations

from statistics import median

from mcpfactory_pipeline.checks.evidence import Evidence

__all__ = ["measure"]


def measure(evidence: Evidence) -> dict[str, int]:
    """Return the figures that could be taken.

    `start_ms`: to the first answer, of the fastest start; `list_ms`: all pages of the tool list; `call_ms`: the median of the
    calls that were answered; `memory_mb`: the peak of the largest process (stdio, Linux).
    """
    found: dict[str, int] = {}
    if starts := [start.milliseconds for start in evidence.starts if start.answered]:
        found["start_ms"] = min(starts)
    listing = evidence.lists.get("tools/list")
    if listing and not listing.problem:
        found["list_ms"] = sum(exchange.milliseconds for exchange in listing.exchanges)
    if calls := [call.exchange.milliseconds for call in evidence.calls if call.exchange.received is not None]:
        found["call_ms"] = round(median(calls))
    if peaks := [start.memory for start in evidence.starts if start.memory is not None]:
        found["memory_mb"] = round(max(peaks) / 1024)
    return found
