"""Measurements of a server: times and memory."""

from __future__ import annotations

from statistics import median

from mcpfactory_pipeline.checks.evidence import Evidence


def measure(evidence: Evidence) -> dict[str, int]:
    """Return the available measurements.

    `start_ms`: shortest time from the start to the first answer. `list_ms`: time to get all pages of the tool list.
    `call_ms`: median time of the answered calls. `memory_mb`: peak memory of the largest process (stdio, Linux).
    """
    found: dict[str, int] = {}
    if starts := [session.milliseconds for session in evidence.sessions if session.answered]:
        found["start_ms"] = min(starts)
    listing = evidence.lists.get("tools/list")
    if listing and not listing.problem:
        found["list_ms"] = sum(exchange.milliseconds for exchange in listing.exchanges)
    if calls := evidence.timed_calls:
        found["call_ms"] = round(median(call.exchange.milliseconds for call in calls))
    if peaks := [session.memory for session in evidence.sessions if session.memory is not None]:
        found["memory_mb"] = round(max(peaks) / 1024)
    return found
