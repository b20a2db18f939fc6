"""What stands behind the checks of a candidate, for whoever decides about it: its tests, what was waived, and what breaks callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.state.state import Candidate, Release

__all__ = ["callers_line", "proof_lines"]

_WAIVED: Final = 5  # rules that a line names


def proof_lines(candidate: Candidate) -> list[str]:
    """Return the lines; none for a candidate that was never tested or validated."""
    tested, judged = _summary(candidate, "test"), _summary(candidate, "validate")
    found = []
    if "tool_tests" in tested:
        words = [
            f"{tested['passed']} passed",
            f"{tested['tool_tests']} ran a tool ({pluralize(tested['tools_run'], 'tool')} in all)",
            f"{tested['skipped']} skipped",
            f"{tested['deselected']} deselected",
        ]
        ran = any(tested[name] for name in ("passed", "skipped", "deselected"))
        found.append(f"tests: {', '.join(words) if ran else 'there are none'}")
    if "score" in judged:
        found.append(f"score {judged['score']}; {_waived(judged)}")
    return found


def callers_line(candidate: Candidate, offered: Release | None, channel: str, server: str) -> str:
    """Return what a candidate means for those who call what the channel offers; "" where nothing breaks, or nobody calls yet.

    A gate may let breaking changes pass, where the version says so by a major step: who decides is told of them all the same.
    """
    if offered is None:
        return ""
    known = _summary(candidate, "validate").get("contract")
    breaking = known.get(offered.candidate) if isinstance(known, Mapping) else None
    if breaking is None:
        return f"what it changes for callers of {offered.version}, which {channel} offers, is not known"
    if not breaking:
        return ""
    changes = f"{pluralize(breaking, 'change')} {'breaks' if breaking == 1 else 'break'}"
    return (
        f"{changes} callers of {offered.version}, which {channel} offers: mcpfactory diff {server} --against {channel}"
    )


def _waived(judged: Mapping[str, Any]) -> str:
    rules = judged.get("waived_rules", [])
    if not judged.get("waived"):
        return "nothing was waived"
    more = f" and {len(rules) - _WAIVED} more" if len(rules) > _WAIVED else ""
    named = f": {', '.join(rules[:_WAIVED])}{more}" if rules else ""
    return f"{pluralize(judged['waived'], 'finding')} waived{named}"


def _summary(candidate: Candidate, stage: str) -> Mapping[str, Any]:
    summary: Mapping[str, Any] = candidate.checks.get(stage, {}).get("summary", {})
    return summary
