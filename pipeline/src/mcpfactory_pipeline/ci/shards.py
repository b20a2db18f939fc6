"""Which servers a run would touch, and in which jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcpfactory_pipeline.plan.plan import BROKEN, RUN, PlanStep

__all__ = ["changed", "matrix", "shards"]


def changed(steps: Iterable[PlanStep]) -> list[str]:
    """Return the servers of a plan that have something to run, or that a run must tell are broken, in order."""
    return list(dict.fromkeys(step.server for step in steps if step.verdict in {RUN, BROKEN}))


def shards(servers: Sequence[str], jobs: int, least: int) -> list[tuple[str, ...]]:
    """Return the servers in at most `jobs` groups whose sizes differ by one at most; a group has `least` servers where there are enough."""
    count = max(1, min(jobs, len(servers) // least)) if servers else 0
    groups: list[tuple[str, ...]] = []
    for number in range(count):
        start, end = (number * len(servers) // count, (number + 1) * len(servers) // count)
        groups.append(tuple(servers[start:end]))
    return groups


def matrix(groups: Sequence[Sequence[str]]) -> dict[str, list[dict[str, object]]]:
    """Return the value of `strategy.matrix`: an entry for each job, with its number and its servers as words."""
    return {"include": [{"shard": number, "servers": " ".join(group)} for number, group in enumerate(groups, 1)]}
