"""Which checks of a candidate would have to run again, because what they read is not what it was. Pure, as the plan is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from mcpfactory_pipeline.plan.plan import describe_change
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.state.state import ServerState

__all__ = ["due_checks", "due_stages"]

# Whoever promotes need not have the Python that the checks ran with; of drift the blockers speak (`promotion.drifted`).
_NOT_DUE: Final = ("python", "drift")
_OF_FACTORY: Final = "stage"


def due_stages(stages: Iterable[Stage], required: Iterable[Stage]) -> list[Stage]:
    """Return what `due_checks` judges: the checks that a channel requires, and what generates from the API document."""
    return [*(stage for stage in stages if "document" in stage.reads and not stage.check), *required]


def due_checks(
    stages: Iterable[Stage], state: ServerState, candidate: str, inputs: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Return the checks of the candidate that are due, in words, each with the reasons; empty when all of them still hold.

    `inputs` is what each stage reads now (`read_inputs`). A candidate that is not the newest was checked beside sources that
    are no more: nothing is said of it. Where the API document changed, what was generated from it is due, too.
    """
    if candidate != state.candidate:
        return []
    found = []
    for stage in stages:
        record = state.stages.get(stage.name)
        if record is not None and "document" in stage.reads and _differs(record.inputs, inputs[stage.name], "document"):
            found.append(f"{stage.name} is due: the API document has changed since")
        if not stage.check or record is None or record.candidate != candidate:
            continue
        now = inputs[stage.name]
        compared = [name for name in record.inputs if name in now and name not in _NOT_DUE]
        reasons = [
            describe_change(name, record.inputs[name], now[name])
            for name in compared
            if record.inputs[name] != now[name] and (name != _OF_FACTORY or stage.settings)
        ]
        if reasons:
            found.append(f"{stage.name} is due: {', '.join(reasons)}")
    return found


def _differs(before: Mapping[str, str], now: Mapping[str, str], name: str) -> bool:
    return name in before and name in now and before[name] != now[name]
