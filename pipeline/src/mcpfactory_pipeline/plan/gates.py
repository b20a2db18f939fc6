"""Gates of a channel.

Each gate compares one fact of a candidate with a limit. A gate is closed if the fact is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.base.versions import is_sufficient_step, next_version
from mcpfactory_pipeline.state.state import Candidate, Release


@dataclass(frozen=True, slots=True)
class PromotionGate:
    """A gate: `read` returns a fact, `opens` compares the fact with the limit, and `message` explains a closed gate.

    `read` also receives the channel's current release, if any. If the fact is a date, its age in days is compared. A
    gate with `switch` has no limit: its setting is `true` or `false`.
    """

    read: Callable[[Candidate, Release | None], Any]
    opens: Callable[[Any, Any], bool]
    message: str
    remedy: str
    switch: bool = False


@dataclass(frozen=True, slots=True)
class _RecordedRate:
    """Lower bound of the pass rate in a model's report. If no report is valid, `lower` is None."""

    model: str
    lower: float | None
    why: str

    def __str__(self) -> str:
        return f"{self.model}: {self.why}" if self.lower is None else f"{self.lower:.2f} with {self.model}"


def _summary(stage: str, fact: str) -> Callable[[Candidate, Release | None], Any]:
    return lambda candidate, _offered: candidate.summary(stage).get(fact)


def _measured(limit: str) -> Callable[[Candidate, Release | None], Any]:
    return lambda candidate, offered: (_summary("validate", "measured")(candidate, offered) or {}).get(
        COST_GATES[limit]
    )


def count_breaking_changes(candidate: Candidate, offered: Release) -> int | None:
    """Return the number of changes that break callers of a release; None if the number is unknown."""
    known = candidate.summary("validate").get("contract")
    return known.get(offered.candidate) if isinstance(known, Mapping) else None


def _broken(candidate: Candidate, offered: Release | None) -> Any:
    """Describe the contract changes that break callers of the channel's release; "" without such changes."""
    if offered is None:
        return ""
    breaking = count_breaking_changes(candidate, offered)
    return None if breaking is None else describe_broken_contract(candidate.version, offered, breaking)


def describe_broken_contract(version: str, offered: Release, breaking: int) -> str:
    """Describe changes that break callers and require a higher version; "" if the version is high enough."""
    if not breaking or is_sufficient_step(offered.version, version, "major"):
        return ""
    least = next_version(offered.version, "major")
    return f"{describe_breaking_changes(breaking)} callers of {offered.version}, which requires version {least}, not {version}"


def describe_breaking_changes(number: int) -> str:
    """Return a number of changes as subject and verb: `1 change breaks`, `2 changes break`."""
    return f"{pluralize(number, 'change')} {'breaks' if number == 1 else 'break'}"


def _lost(candidate: Candidate, offered: Release | None) -> Any:
    """Count the tests that the channel's candidate passed and this candidate did not pass; None if unknown."""
    if offered is None:
        return 0
    known = _summary("test", "lost")(candidate, offered)
    return known.get(offered.candidate) if isinstance(known, Mapping) else None


def _share(candidate: Candidate, _offered: Release | None) -> Any:
    """Return the percentage of API operations that are tools; 100 for a server without an API document."""
    if candidate.facts.get("document") is False:
        return 100
    return candidate.facts.get("coverage")


def _pass_rate(candidate: Candidate, offered: Release | None) -> Any:
    """Return the lowest pass rate of the required models. An invalid report counts as the lowest rate."""
    known: Mapping[str, Mapping[str, Any]] = _summary("evaluate", "models")(candidate, offered) or {}
    rates = [_RecordedRate(model, one.get("lower"), str(one.get("why", ""))) for model, one in known.items()]
    return min(rates, key=lambda one: -1.0 if one.lower is None else one.lower, default=None)


def _asked(candidate: Candidate, offered: Release | None) -> date | None:
    """Return the day of the oldest report; None if a model has no report."""
    known: Mapping[str, Mapping[str, Any]] = _summary("evaluate", "models")(candidate, offered) or {}
    days = [one.get("asked") for one in known.values()]
    return min((date.fromisoformat(str(day)) for day in days), default=None) if all(days) else None


def _at_least(value: Any, limit: Any) -> bool:
    return bool(value >= limit)


def _at_most(value: Any, limit: Any) -> bool:
    return bool(value <= limit)


# Limit → measured value (`checks.evidence.measure`). The rules about performance have the same names as the limits.
COST_GATES: Final[Mapping[str, str]] = {
    "max_start_ms": "start_ms",
    "max_call_ms": "call_ms",
    "max_memory_mb": "memory_mb",
}
_TESTS: Final = "mcpfactory pipeline history {server} test"
_LOOK: Final = "mcpfactory validate {server}"
_ASK: Final = "mcpfactory evaluate {server} --model KIND:MODEL --report, then mcpfactory pipeline run {server}"

GATES: Final[Mapping[str, PromotionGate]] = {
    "min_score": PromotionGate(
        _summary("validate", "score"),
        _at_least,
        "score {value}, at least {limit} wanted",
        "mcpfactory validate {server}",
    ),
    "max_critical": PromotionGate(
        _summary("validate", "critical"),
        _at_most,
        "{value} findings of severity 5, at most {limit} allowed",
        "mcpfactory validate {server}",
    ),
    "min_tests": PromotionGate(
        _summary("test", "tool_tests"),
        _at_least,
        "{value} tests passed that ran a tool of the server, at least {limit} wanted",
        "add tests to servers/{server}/tests/",
    ),
    "max_skipped_tests": PromotionGate(
        _summary("test", "skipped"), _at_most, "{value} tests are skipped, at most {limit} allowed", _TESTS
    ),
    "max_deselected_tests": PromotionGate(
        _summary("test", "deselected"), _at_most, "{value} tests are deselected, at most {limit} allowed", _TESTS
    ),
    "max_lost_tests": PromotionGate(
        _lost,
        _at_most,
        "{value} tests that the candidate in the channel passed are gone, at most {limit} allowed",
        _TESTS,
    ),
    "token_budget": PromotionGate(
        lambda candidate, _offered: candidate.facts.get("tokens"),
        _at_most,
        "tools take {value} tokens, at most {limit} allowed",
        "mcpfactory inspect {server}",
    ),
    "min_coverage": PromotionGate(
        _share,
        _at_least,
        "{value} % of the operations are tools, at least {limit} % wanted",
        "mcpfactory inspect {server}",
    ),
    "max_start_ms": PromotionGate(
        _measured("max_start_ms"), _at_most, "the first answer takes {value} ms, at most {limit} allowed", _LOOK
    ),
    "max_call_ms": PromotionGate(
        _measured("max_call_ms"), _at_most, "a call takes {value} ms, at most {limit} allowed", _LOOK
    ),
    "max_memory_mb": PromotionGate(
        _measured("max_memory_mb"), _at_most, "the process takes {value} MB, at most {limit} allowed", _LOOK
    ),
    "min_pass_rate": PromotionGate(
        _pass_rate,
        lambda value, limit: value.lower is not None and value.lower >= limit,
        "the lower bound of the pass rate is {value}, at least {limit} wanted",
        _ASK,
    ),
    "max_report_days": PromotionGate(
        _asked, _at_most, "the report of a model is {value} days old, at most {limit} allowed", _ASK
    ),
    "contract": PromotionGate(
        _broken,
        lambda value, _limit: value == "",
        "{value}",
        "mcpfactory diff {server} --against {channel}",
        switch=True,
    ),
}


def closed_gates(
    limits: Mapping[str, float], candidate: Candidate, offered: Release | None = None, *, today: date | None = None
) -> dict[str, str]:
    """Return the gates that are closed for a candidate, each with the reason.

    `offered` is the channel's current release. `today` is the day for computing ages, by default the current day.
    """
    found = {}
    for name, limit in limits.items():
        gate = GATES[name]
        value = gate.read(candidate, offered)
        if isinstance(value, date):
            value = ((today or utc_now().date()) - value).days
        if value is None:
            about = name if gate.switch else f"{name} {_plain(limit)}"
            found[name] = f"{about} cannot be checked: the candidate does not say"
        elif not gate.opens(value, limit):
            found[name] = gate.message.format(value=_plain(value), limit=_plain(limit))
    return found


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
