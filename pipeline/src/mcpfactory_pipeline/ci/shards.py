"""Which servers a run would touch, and in which jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcpfactory_pipeline.plan.plan import BROKEN, RUN, PlanStep
from mcpfactory_pipeline.workspace.workspace import is_name

__all__ = ["changed", "matrix", "shards"]


def changed(steps: Iterable[PlanStep]) -> tuple[list[str], list[str]]:
    """Return the servers of a plan that have something to run, or that a run must tell are broken, in order.

    Second: those of them that no job can have. Their names are more than names, and names become words of a script.
    """
    found = list(dict.fromkeys(step.server for step in steps if step.verdict in {RUN, BROKEN}))
    return [name for name in found if is_name(name)], [name for name in found if not is_name(name)]


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
