"""Which servers a run would touch, and in which jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.plan.plan import BROKEN, RUN, PlanStep
from mcpfactory_pipeline.workspace.workspace import is_name

__all__ = ["changed", "matrix", "shards"]


def changed(steps: Iterable[PlanStep]) -> list[str]:
    """Return the servers of a plan that have something to run, or that a run must tell are broken, in order.

    Raises:
        ConfigError: one of them has a name that no server may have: names become words of a script.
    """
    found = list(dict.fromkeys(step.server for step in steps if step.verdict in {RUN, BROKEN}))
    odd = next((name for name in found if not is_name(name)), None)
    if odd is not None:
        raise ConfigError(f"{f'servers/{odd}'!r} cannot be the folder of a server", hint="give it a name like bookshop")
    return found


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
