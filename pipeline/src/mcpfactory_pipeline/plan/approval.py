"""Stages of kind `approval`: a person decides, about exactly what was shown. Pure: policies and decisions in, verdicts out.

What a stage shows is what it reads: the candidate, what other stages found (`stage:NAME`), files of the server (`file:PATH`)
and kept reports (`artifact:STAGE/PATH`). A decision counts as long as all of that is what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.plan.policy import missing_approvals, person_key
from mcpfactory_pipeline.state.state import StageDecision

__all__ = ["AGENT_DECISIONS", "ApprovalPolicy", "approved_by", "describe_missing", "rejected_by"]


AGENT_DECISIONS: Final = ("approve", "reject")


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """What an approval stage asks for: so many approvals, of these people (anyone when none is named), about this question.

    `restart` names the stage that runs again after a rejection; "" means that everything behind the stage stops.
    With `signed` an approval counts with the signature of who gave it. `agents` are the decisions (of `AGENT_DECISIONS`) that an
    agent may make once a person said yes.
    """

    approvals: int = 1
    approvers: tuple[str, ...] = ()
    message: str = ""
    restart: str = ""
    signed: bool = False
    agents: tuple[str, ...] = ()


def approved_by(policy: ApprovalPolicy, made: StageDecision | None, shown: Mapping[str, str]) -> list[str]:
    """Who approved what is shown now and may do so (by today's list of approvers), in order of names."""
    if made is None or dict(made.shown) != dict(shown):
        return []
    people = {person_key(who): who for who in sorted(made.approvals, reverse=True)}  # one in several spellings is one
    allowed = {person_key(who) for who in policy.approvers}
    return sorted(who for key, who in people.items() if not allowed or key in allowed)


def rejected_by(made: StageDecision | None, shown: Mapping[str, str]) -> list[tuple[str, str]]:
    """Who rejected what is shown now, and why."""
    if made is None or dict(made.shown) != dict(shown):
        return []
    return sorted(made.rejections.items())


def describe_missing(policy: ApprovalPolicy, made: StageDecision | None, shown: Mapping[str, str]) -> str:
    """Return in words what is missing, `1 of 2 approvals missing, from Ada, Grace`; "" when nothing is."""
    given = approved_by(policy, made, shown)
    missing = missing_approvals(policy.approvals, given, policy.approvers)
    if not missing:
        return ""
    before = made is not None and made.approvals and dict(made.shown) != dict(shown)
    again = "; what was approved before has changed" if before else ""
    return missing + again
