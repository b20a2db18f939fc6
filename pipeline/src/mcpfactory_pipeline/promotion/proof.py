"""What stands behind the checks of a candidate, for whoever decides about it: its tests, and what was waived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.state.state import Candidate

__all__ = ["proof_lines"]

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
        found.append(f"tests: {', '.join(words)}")
    if "score" in judged:
        found.append(f"score {judged['score']}; {_waived(judged)}")
    return found


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
