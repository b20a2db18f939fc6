"""Report of a model's answers: pass rates with confidence intervals.

The statistical unit is the question, not the repetition, because answers to one question are similar. More repetitions
only make the pass rate of one question more certain.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cached_property
from math import sqrt
from statistics import NormalDist, StatisticsError, correlation, median
from typing import Any, Final

from mcpfactory_pipeline.base.errors import JsonRecord, StateError
from mcpfactory_pipeline.base.files import unreadable_json_reason
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.checks.evaluation.judgment import NO_TOOL, Attempt, ModelRunSetting
from mcpfactory_pipeline.checks.evaluation.model_endpoint import NO_TOKENS, TokenUsage
from mcpfactory_pipeline.checks.evaluation.offered_tools import SearchModeTools
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from mcpfactory_pipeline.workspace.settings import EndpointSettings

_CONFIDENCE: Final = 0.95
_Z: Final = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)


class _Rounded(JsonRecord):
    __slots__ = ()

    def to_json(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in super().to_json().items()}


@dataclass(frozen=True, slots=True)
class PassRate(_Rounded):
    """A share from 0 to 1 with its 95 % confidence interval. `questions` is the sample size."""

    rate: float
    lower: float
    upper: float
    questions: int

    @property
    def words(self) -> str:
        """Return the rate as text: `83% (55–95%)`."""
        return f"{self.rate:.0%} ({100 * self.lower:.0f}–{self.upper:.0%})"


@dataclass(frozen=True, slots=True)
class RateDifference(_Rounded):
    """Difference between two shares with its confidence interval.

    `questions` is the number of questions that both shares have.
    """

    change: float
    lower: float
    upper: float
    questions: int

    @property
    def sure(self) -> bool:
        """Return True if the interval excludes 0."""
        return self.lower > 0 or self.upper < 0

    @property
    def words(self) -> str:
        """Return the difference as text: `+12 points (-3 to +27)`."""
        return f"{100 * self.change:+.0f} points ({100 * self.lower:+.0f} to {100 * self.upper:+.0f})"


def wilson_pass_rate(passed: float, tried: int) -> PassRate:
    """Return the share `passed` / `tried` with its Wilson interval; if `tried` is 0, the interval is 0 to 1."""
    if tried <= 0:
        return PassRate(0.0, 0.0, 1.0, 0)
    share, square = passed / tried, _Z * _Z
    middle = (share + square / (2 * tried)) / (1 + square / tried)
    half = _Z / (1 + square / tried) * sqrt(share * (1 - share) / tried + square / (4 * tried * tried))
    return PassRate(share, max(0.0, middle - half), min(1.0, middle + half), tried)


def mean_rate(shares: Sequence[float]) -> PassRate:
    """Return the mean share of several questions, with Wilson's interval for the number of questions."""
    return wilson_pass_rate(sum(shares), len(shares))


def pass_rate_difference(before: Sequence[float], after: Sequence[float]) -> RateDifference:
    """Return the difference between two lists of shares for the same questions (Newcombe's interval for pairs)."""
    old, new = mean_rate(before), mean_rate(after)
    if not before:
        return RateDifference(0.0, -1.0, 1.0, 0)
    try:
        tied = correlation(before, after)
    except StatisticsError:  # a correlation needs several questions and different values
        tied = 0.0
    change = new.rate - old.rate
    down, up = (new.rate - new.lower, old.upper - old.rate), (new.upper - new.rate, old.rate - old.lower)
    return RateDifference(
        change, max(-1.0, change - _joined(*down, tied)), min(1.0, change + _joined(*up, tied)), len(before)
    )


def _joined(first: float, second: float, tied: float) -> float:
    return sqrt(max(0.0, first * first - 2 * tied * first * second + second * second))


_FORM: Final = 1
# Fields of a tool that a client reads before it calls the tool.
_SEEN: Final = ("name", "title", "description", "inputSchema", "annotations")
_MILLION: Final = 1_000_000


def hash_shown_tools(tools: Iterable[Mapping[str, Any]]) -> str:
    """Return a hash of the tools as models see them, without the search mode's own tools.

    The order of the tools does not change the hash.
    """
    listed = list(tools)
    machinery = SearchModeTools(listed).machinery
    rows = sorted(
        json.dumps({key: tool.get(key) for key in _SEEN}, sort_keys=True)
        for tool in listed
        if tool["name"] not in machinery
    )
    return hash_bytes("\n".join(rows).encode())


def hash_cases(cases: Iterable[EvaluationCase]) -> str:
    """Return a hash of the cases; their order does not change the hash."""
    rows = sorted(json.dumps(case.model_dump(), sort_keys=True) for case in cases)
    return hash_bytes("\n".join(rows).encode())


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """Prices per million tokens, from the workspace settings."""

    read: float
    written: float
    cached: float
    currency: str = "USD"

    def of(self, usage: TokenUsage) -> float:
        """Return the cost of the tokens that were used."""
        fresh = max(0, usage.read - usage.cached)
        return (fresh * self.read + usage.cached * self.cached + usage.written * self.written) / _MILLION


def read_prices(settings: EndpointSettings) -> ModelPrices | None:
    """Return the prices in the settings of a model, or None if the settings have none."""
    if settings.read is None or settings.written is None:
        return None
    cached = settings.read if settings.cached is None else settings.cached
    return ModelPrices(settings.read, settings.written, cached, settings.currency)


@dataclass(frozen=True)  # no slots: cached properties need a `__dict__`
class ModelReport:
    """Results of the questions to a model.

    Attributes:
        server: the name of the server.
        model: `KIND:NAME`.
        endpoint: the endpoint's address; "" for the vendor's default.
        asked: the day of the run.
        tools: the hash of the server's whole tool list; it identifies the tested version.
        cases: the hash of the cases.
        repeat: number of attempts per case and setting.
        questions: the questions of the cases, by name.
        lists: setting → number of tools, and number of their tokens, that the model gets.
        attempts: all attempts at every question.
        prices: per million tokens, or None.
    """

    server: str
    model: str
    endpoint: str
    asked: date
    tools: str
    cases: str
    repeat: int
    questions: Mapping[str, str]
    lists: Mapping[ModelRunSetting, tuple[int, int]]
    attempts: Sequence[Attempt] = field(default=())
    prices: ModelPrices | None = None

    @cached_property
    def settings(self) -> list[ModelRunSetting]:
        """Return the settings that the report covers, in the requested order."""
        return list(self.lists)

    @cached_property
    def _by_case(self) -> Mapping[tuple[ModelRunSetting, str], list[Attempt]]:
        found: dict[tuple[ModelRunSetting, str], list[Attempt]] = {}
        for one in self.attempts:
            found.setdefault((one.setting, one.case), []).append(one)
        return found

    def of(self, setting: ModelRunSetting, case: str | None = None) -> list[Attempt]:
        """Return the attempts in a setting, of one case or of all cases."""
        return [
            one for name in self.questions if case in {None, name} for one in self._by_case.get((setting, name), [])
        ]

    def case_rate(self, setting: ModelRunSetting, case: str) -> PassRate:
        """Return the pass rate of a case, without unanswered attempts."""
        answered = [one for one in self.of(setting, case) if one.answered]
        return wilson_pass_rate(sum(one.verdict == "passed" for one in answered), len(answered))

    def rate(self, setting: ModelRunSetting) -> PassRate:
        """Return the pass rate over all answered cases."""
        return mean_rate([self.case_rate(setting, case).rate for case in self._answered(setting)])

    def _answered(self, setting: ModelRunSetting) -> list[str]:
        return [case for case in self.questions if self.case_rate(setting, case).questions]

    def missing(self, setting: ModelRunSetting) -> int:
        """Return the number of attempts that are missing or got no answer; a complete report has 0."""
        answered = sum(one.answered for one in self.of(setting))
        return len(self.questions) * self.repeat - answered

    def against(
        self, setting: ModelRunSetting, earlier: ModelReport, other: ModelRunSetting | None = None
    ) -> RateDifference:
        """Return the change in pass rate since an earlier report, over the questions that both reports have.

        `other` is the setting in the earlier report.
        """
        other = other or setting
        shared = [
            case
            for case in self._answered(setting)
            if case in earlier._answered(other) and self.questions[case] == earlier.questions[case]
        ]
        old = [earlier.case_rate(other, case).rate for case in shared]
        return pass_rate_difference(old, [self.case_rate(setting, case).rate for case in shared])

    def confusion(self, setting: ModelRunSetting) -> Counter[tuple[str, str]]:
        """Return (expected tool, called tool) → number of attempts."""
        return Counter((one.expected, one.chosen) for attempt in self.of(setting) for one in attempt.choices)

    def confused_cases(self) -> dict[tuple[str, str], list[str]]:
        """Return (expected tool, called tool) → cases with this confusion; cases without a call are omitted."""
        found: dict[tuple[str, str], list[str]] = {}
        for attempt in self.attempts:
            for one in attempt.choices if attempt.setting.words == "own" else ():
                if one.chosen not in {one.expected, NO_TOOL}:
                    found.setdefault((one.expected, one.chosen), []).append(attempt.case)
        return found

    def wrong_arguments(self, setting: ModelRunSetting) -> Counter[tuple[str, str, str]]:
        """Return (tool, argument, kind of error) → number of errors."""
        return Counter((one.tool, one.field, one.kind) for attempt in self.of(setting) for one in attempt.wrong)

    def usage(self, setting: ModelRunSetting) -> TokenUsage:
        """Return the number of tokens in all attempts of a setting."""
        return sum((one.usage for one in self.of(setting)), NO_TOKENS)

    def cost(self, setting: ModelRunSetting) -> float | None:
        """Return the cost of a setting, or None if the prices are unknown."""
        return None if self.prices is None else self.prices.of(self.usage(setting))

    def seconds(self, setting: ModelRunSetting) -> float:
        """Return the median seconds that the endpoint needed per question."""
        return median([one.waited for one in self.of(setting) if one.answered] or [0.0])

    def turns(self, setting: ModelRunSetting) -> float:
        """Return the mean number of turns per question."""
        answered = [one.turns for one in self.of(setting) if one.answered]
        return sum(answered) / len(answered) if answered else 0.0

    def failures(self, setting: ModelRunSetting) -> list[Attempt]:
        """Return the failed attempts."""
        return [one for one in self.of(setting) if one.verdict != "passed"]

    def figures(self, setting: ModelRunSetting) -> dict[str, Any]:
        """Return the figures of one setting as plain data."""
        tools, tokens = self.lists[setting]
        return {
            **asdict(setting),
            "tools": tools,
            "tokens": tokens,
            "rate": self.rate(setting).to_json(),
            "missing": self.missing(setting),
            "cases": {case: self.case_rate(setting, case).to_json() for case in self.questions},
            "verdicts": dict(Counter(one.verdict for one in self.of(setting))),
            "confusion": [
                {"expected": expected, "chosen": chosen, "times": times}
                for (expected, chosen), times in sorted(self.confusion(setting).items())
            ],
            "wrong_arguments": [
                {"tool": tool, "field": name, "kind": kind, "times": times}
                for (tool, name, kind), times in sorted(self.wrong_arguments(setting).items())
            ],
            "usage": self.usage(setting).to_json(),
            "cost": self.cost(setting),
            "turns": round(self.turns(setting), 2),
            "seconds": round(self.seconds(setting), 3),
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain data: the data for `read_report`, and figures for other programs."""
        return {
            "evaluation": _FORM,
            "server": self.server,
            "model": self.model,
            "endpoint": self.endpoint,
            "asked": self.asked.isoformat(),
            "tools": self.tools,
            "cases": self.cases,
            "repeat": self.repeat,
            "questions": dict(self.questions),
            "lists": [{**asdict(one), "tools": counts[0], "tokens": counts[1]} for one, counts in self.lists.items()],
            "prices": self.prices and asdict(self.prices),
            "figures": [self.figures(setting) for setting in self.settings],
            "attempts": [one.to_json() for one in self.attempts],
        }


def read_report(text: bytes, where: str) -> ModelReport:
    """Parse the bytes of a report file, and recompute the figures from the attempts.

    Raises:
        StateError: the report is invalid.
    """
    try:
        data = json.loads(text)
        if data["evaluation"] != _FORM:
            raise ValueError(f"form {data['evaluation']!r}")
        lists = {
            ModelRunSetting(one["profile"], one["mode"], one["words"]): (int(one["tools"]), int(one["tokens"]))
            for one in data["lists"]
        }
        return ModelReport(
            **{name: str(data[name]) for name in ("server", "model", "endpoint", "tools", "cases")},
            asked=date.fromisoformat(data["asked"]),
            repeat=int(data["repeat"]),
            questions={str(name): str(value) for name, value in data["questions"].items()},
            lists=lists,
            attempts=[Attempt.from_json(one) for one in data["attempts"]],
            prices=ModelPrices(**data["prices"]) if data.get("prices") else None,
        )
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise StateError(
            f"{where} is not a valid evaluation report: {unreadable_json_reason(error)}",
            hint="mcpfactory evaluate NAME --model … --report",
        ) from error
