"""Facts that a decision depends on, and their hash (the precondition).

If a fact has changed since the user saw it, the decision is refused. A precondition contains a short hash of each fact,
and therefore reveals changed facts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.channels.contract import BreakingChanges
from mcpfactory_pipeline.plan.gates import describe_breaking_changes
from mcpfactory_pipeline.plan.policy import describe_decision
from mcpfactory_pipeline.plan.stage import decisions_about_shown_content
from mcpfactory_pipeline.state.state import Candidate, Release, ServerState
from mcpfactory_pipeline.workspace.policy import ApprovalPolicy, ChannelPolicy

_DIGITS: Final = 8  # number of hexadecimal digits per fact in a token
_NOTHING: Final = "nothing"


@dataclass(frozen=True, slots=True)
class DecisionFacts:
    """Facts that a person sees before a decision: name → text."""

    parts: Mapping[str, str]

    @property
    def precondition(self) -> str:
        """Return the short hashes of all facts, in order."""
        return "".join(hashlib.sha256(words.encode()).hexdigest()[:_DIGITS] for words in self.parts.values())


@dataclass(frozen=True, slots=True)
class FactChange:
    """A changed fact. `before` is "" for an unknown earlier text."""

    part: str
    before: str
    now: str

    @property
    def words(self) -> str:
        """Describe the change."""
        was = f" (before: {self.before})" if self.before else ""
        return f"{self.part}: {self.now}{was}"


class StaleDecisionError(PromotionError):
    """Error for a decision whose facts have changed."""

    def __init__(self, about: str, facts: DecisionFacts, changes: tuple[FactChange, ...]) -> None:
        super().__init__(
            f"{about} has changed since you looked: now {'; '.join(one.words for one in changes)}",
            hint=f"review the changes, then decide with precondition {facts.precondition} if you still want to",
        )
        self.facts, self.changes = facts, changes


def channel_decision_facts(state: ServerState, channel: ChannelPolicy, candidate: str | None = None) -> DecisionFacts:
    """Return the facts of a decision about a channel.

    By default, the decision is about the candidate in the preceding channel.
    """
    chosen = candidate or state.offered(channel.source) or state.candidate or ""
    known = state.candidates.get(chosen)
    offers = [f"{name} offers {_offer(state.channels.get(name))}" for name in (channel.source, channel.name) if name]
    return DecisionFacts(
        {
            "candidate": f"{known.version} ({chosen})" if known else _NOTHING,
            "channels": "; ".join(offers),
            "checks": "; ".join(_checks(known)) or _NOTHING,
            "decisions": "; ".join(_decisions(state, channel.name, known)) or _NOTHING,
            "policy": _policy(channel),
        }
    )


def stage_decision_facts(
    state: ServerState, stage: str, policy: ApprovalPolicy, shown: Mapping[str, str]
) -> DecisionFacts:
    """Return the facts of a decision about an approval stage: shown content, decisions and policy."""
    current = decisions_about_shown_content(state.decisions.get(stage), shown)
    said = [*_said("approved", current.approvals), *_said("rejected", current.rejections)] if current else []
    shows = "; ".join(f"{part} {value}" for part, value in sorted(shown.items()))
    return DecisionFacts(
        {"shown": shows or _NOTHING, "decisions": "; ".join(said) or _NOTHING, "policy": _policy(policy)}
    )


def require_precondition(precondition: str, facts: DecisionFacts, about: str) -> None:
    """Refuse a decision whose facts have changed. An empty precondition skips the check.

    Raises:
        PromotionError: the precondition belongs to another kind of decision.
    """
    if precondition and precondition != facts.precondition:
        raise StaleDecisionError(about, facts, changed_facts(precondition, facts))


def changed_facts(
    precondition: str, facts: DecisionFacts, before: Mapping[str, str] | None = None
) -> tuple[FactChange, ...]:
    """Return the facts that changed since the precondition was shown."""
    if len(precondition) != _DIGITS * len(facts.parts) or set(precondition) - set("0123456789abcdef"):
        raise PromotionError(
            f"{precondition[:60]!r} is not a precondition of this decision",
            hint="copy `precondition` from the output of: mcpfactory inbox --json",
        )
    seen = [precondition[start : start + _DIGITS] for start in range(0, len(precondition), _DIGITS)]
    now = [DecisionFacts({part: words}).precondition for part, words in facts.parts.items()]
    return tuple(
        FactChange(part, (before or {}).get(part, ""), words)
        for (part, words), old, new in zip(facts.parts.items(), seen, now, strict=True)
        if old != new
    )


def _offer(release: Release | None) -> str:
    if release is None:
        return _NOTHING
    before = f", before {', '.join(release.before)}" if release.before else ""
    return f"{release.version} ({release.candidate}{before})"


def _checks(candidate: Candidate | None) -> list[str]:
    """Describe the check results of a candidate."""
    found = []
    for name, check in sorted(candidate.checks.items()) if candidate else ():
        summary = ", ".join(f"{key} {_plain(value)}" for key, value in sorted(check.get("summary", {}).items()))
        words = " ".join(filter(None, (str(check.get("outcome")), summary and f"({summary})")))
        found.append(f"{name} {words} {str(check.get('fingerprint', '')).removeprefix('sha256:')[:_DIGITS]}".rstrip())
    return found


def _decisions(state: ServerState, channel: str, candidate: Candidate | None) -> list[str]:
    found = [describe_decision("retired", state.retired)] if state.retired else []
    if hold := state.holds.get(channel):
        found.append(f"{channel} {describe_decision('held', hold)}")
    if candidate:
        found += _said("approved", candidate.approvals.get(channel, {}))
        found += _said("rejected", candidate.rejections.get(channel, {}))
    stages = sorted(state.decisions.items())
    for stage, made in stages:
        found += [
            f"{stage} {words}" for words in (*_said("approved", made.approvals), *_said("rejected", made.rejections))
        ]
    return found


def _said(what: str, people: Mapping[str, str]) -> list[str]:
    return [describe_decision(what, {"actor": who, "reason": why}) for who, why in sorted(people.items())]


_ASKED: Final = (
    *("source", "gates", "soak", "approvals", "approvers", "message", "restart", "agents", "signed", "checks"),
)


def _policy(policy: ChannelPolicy | ApprovalPolicy) -> str:
    fields = {name: getattr(policy, name, None) for name in _ASKED}
    fields = {name: value for name, value in fields.items() if value not in (None, (), {}, "", 0)}
    return "; ".join(f"{name} {_plain(value)}" for name, value in fields.items()) or "asks for nothing"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(one)}" for key, one in sorted(value.items())) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


_WAIVED: Final = 5  # maximum number of waived rules in a line


def describe_check_results(candidate: Candidate) -> list[str]:
    """Return a line about a candidate's tests and a line about its score."""
    tested, judged = candidate.summary("test"), candidate.summary("validate")
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


def breaking_changes_line(found: BreakingChanges, offered: Release | None, channel: str, server: str) -> str:
    """Describe changes that break callers of the channel's current candidate, or return ""."""
    if offered is None or found.count == 0:
        return ""
    if found.count is None:
        return f"its changes for callers of {offered.version} in {channel} are unknown"
    offer = f"{offered.version}, which {channel} offers"
    look = f"mcpfactory diff {server} --against {channel}"
    return f"{describe_breaking_changes(found.count)} callers of {offer}{found.named}: {look}"


def _waived(judged: Mapping[str, Any]) -> str:
    rules = judged.get("waived_rules", [])
    if not judged.get("waived"):
        return "nothing was waived"
    more = f" and {len(rules) - _WAIVED} more" if len(rules) > _WAIVED else ""
    named = f": {', '.join(rules[:_WAIVED])}{more}" if rules else ""
    return f"{pluralize(judged['waived'], 'finding')} waived{named}"
