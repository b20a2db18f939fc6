"""Judge the calls and the answer of a model for a case.

An accepted call sequence is complete if the calls have the expected order, arguments and content of results. The calls
of one turn are parallel and have no order. An extra call is harmless if it only reads data, or if it failed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.checks.evaluation.model_endpoint import NO_TOKENS, TokenUsage
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase, ExpectedCall
from mcpfactory_runtime.schemas.walk import items_schema_of, properties_of

NO_TOOL: Final = "(none)"
"""Stands for the name of the tool if no tool was expected, or no tool was called."""

VERDICTS: Final[Mapping[str, str]] = {
    "passed": "an accepted sequence of calls was made, and no other call wrote anything",
    "no-call": "no tool was called",
    "wrong-tool": "another tool was called",
    "wrong-arguments": "the right tool was called with other arguments",
    "wrong-answer": "the right call failed, or the answer lacks a required text",
    "unwanted-call": "a tool was called although none fits, or an additional tool that writes was called",
    "refused": "the model refused to answer",
    "unfinished": "the model did not finish",
    "unanswered": "the endpoint gave no answer: the result is unknown",
}

SHOWN: Final = 300  # maximum characters of a stored text


@dataclass(frozen=True, slots=True)
class ModelRunSetting:
    """Setting for the tools that a model gets: profile, mode, and descriptions (`own` or a distortion)."""

    profile: str = "full"
    mode: str = "full"
    words: str = "own"

    @property
    def title(self) -> str:
        """Return the name of the setting for tables."""
        return ", ".join([self.profile, self.mode, *([] if self.words == "own" else [self.words])])


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that a model made, with the real name of the tool.

    `arguments` is None if the model did not send a JSON object. `machinery` is True for a tool search in search mode.
    """

    tool: str
    arguments: Mapping[str, Any] | None
    turn: int
    answer: str = ""
    failed: bool = False
    machinery: bool = False


@dataclass(frozen=True, slots=True)
class ModelTranscript:
    """Calls and answer of a model. `seconds` is the total time; `waited` is the part spent waiting for the endpoint."""

    calls: tuple[MadeCall, ...]
    text: str
    turns: int
    usage: TokenUsage = NO_TOKENS
    seconds: float = 0.0
    waited: float = 0.0
    refused: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The expected tool, and the tool that the model called instead."""

    expected: str
    chosen: str


@dataclass(frozen=True, slots=True)
class WrongArgument:
    """Wrong argument in a call of the right tool.

    `kind` is `missing`, `different`, `extra`, or `unreadable` (invalid JSON).
    """

    tool: str
    field: str
    kind: str
    expected: str = ""
    given: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a case in one setting. `verdict` is a key of `VERDICTS`."""

    case: str
    setting: ModelRunSetting
    number: int
    verdict: str
    faults: tuple[str, ...] = ()
    choices: tuple[ToolChoice, ...] = ()
    wrong: tuple[WrongArgument, ...] = ()
    calls: tuple[MadeCall, ...] = ()
    text: str = ""
    turns: int = 0
    usage: TokenUsage = NO_TOKENS
    seconds: float = 0.0
    waited: float = 0.0

    @property
    def answered(self) -> bool:
        """Return True if the endpoint answered."""
        return self.verdict != "unanswered"

    def to_json(self) -> dict[str, Any]:
        """Return plain data; long texts are truncated."""
        data = asdict(self)
        data |= {name: list(data[name]) for name in ("faults", "choices", "wrong")}
        data["calls"] = [{**call, "answer": call["answer"][:SHOWN]} for call in data["calls"]]
        rounded = {name: round(data[name], 3) for name in ("seconds", "waited")}
        return {**data, **rounded, "text": self.text[:SHOWN]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Attempt:
        """Return the attempt from the output of `to_json`.

        Raises:
            ValueError, TypeError, KeyError: the data is invalid.
        """
        if data["verdict"] not in VERDICTS:
            raise ValueError(f"{data['verdict']!r} is not a valid verdict")
        parts: dict[str, Any] = {
            "setting": ModelRunSetting(**data["setting"]),
            "faults": tuple(map(str, data["faults"])),
            "choices": tuple(ToolChoice(**one) for one in data["choices"]),
            "wrong": tuple(WrongArgument(**one) for one in data["wrong"]),
            "calls": tuple(MadeCall(**one) for one in data["calls"]),
            "usage": TokenUsage(**data["usage"]),
        }
        return cls(**{**data, **parts})


Tools = Mapping[str, Mapping[str, Any]]

_SHOWN: Final = 120  # maximum characters of a value in a message
_TOOLS: Final = 5  # maximum number of tools in a message
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Judgment:
    """Judgment of a transcript: a key of `VERDICTS`, and the reasons."""

    verdict: str
    faults: tuple[str, ...] = ()
    choices: tuple[ToolChoice, ...] = ()
    wrong: tuple[WrongArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class _Match:
    way: Sequence[ExpectedCall]
    found: Sequence[MadeCall]
    missing: Sequence[ExpectedCall]
    others: Sequence[MadeCall]

    @property
    def near(self) -> tuple[int, int]:
        tools = {one.tool for one in self.others}
        return len(self.found), sum(one.tool in tools for one in self.missing)


def judge_transcript(case: EvaluationCase, done: ModelTranscript, tools: Tools) -> Judgment:
    """Judge a model's calls for a case; `tools` maps the names of all tools of the server to their list entries."""
    calls = [one for one in done.calls if not one.machinery]
    if not case.right:
        return _judge_none(calls, done)
    matches = [_match(way, calls, tools) for way in case.right]
    choices = _choices(max(matches, key=lambda one: one.near), calls)
    if done.refused:
        return Judgment("refused", (done.text,) if done.text else (), choices)
    if done.cut:
        return Judgment("unfinished", (f"{done.turns} turns were not enough, or an answer was cut off",), choices)
    whole = [one for one in matches if not one.missing]
    if not whole:
        return _explain(max(matches, key=lambda one: one.near), calls, tools, choices)
    written = [[one.tool for one in match.others if _writes(one, tools)] for match in whole]
    if all(written):
        return Judgment("unwanted-call", tuple(_each_once(written[0], "{}, which writes, was also called{}")), choices)
    if lacking := [text for text in case.answer if text.casefold() not in done.text.casefold()]:
        return Judgment("wrong-answer", tuple(f"the final answer does not say {text!r}" for text in lacking), choices)
    return Judgment("passed", (), choices)


def _judge_none(calls: Sequence[MadeCall], done: ModelTranscript) -> Judgment:
    if calls:
        faults = tuple(_each_once([one.tool for one in calls], "{} was called{}, and no tool fits"))
        return Judgment("unwanted-call", faults, (ToolChoice(NO_TOOL, calls[0].tool),))
    verdict = "unfinished" if done.cut else "passed"
    return Judgment(verdict, (), (ToolChoice(NO_TOOL, NO_TOOL),))


def _each_once(tools: Sequence[str], words: str) -> Iterator[str]:
    """Yield one text per tool, with the number of calls: a model may make hundreds of calls in one turn."""
    counts = Counter(tools)
    for name, count in list(counts.items())[:_TOOLS]:
        yield words.format(name, f" {count} times" if count > 1 else "")
    if len(counts) > _TOOLS:
        rest = len(counts) - _TOOLS
        yield f"so {'was' if rest == 1 else 'were'} {pluralize(rest, 'other tool')}"


def _match(way: Sequence[ExpectedCall], calls: Sequence[MadeCall], tools: Tools) -> _Match:
    left, found, missing, turn = list(calls), [], [], 0
    for wanted in way:
        fits = [one for one in left if one.turn >= turn and not _call_faults(wanted, one, tools)]
        if fits:
            found.append(fits[0])
            left.remove(fits[0])
            turn = fits[0].turn
        else:
            missing.append(wanted)
    return _Match(way, found, missing, left)


def _call_faults(wanted: ExpectedCall, made: MadeCall, tools: Tools) -> list[str]:
    """Return the differences between a call and the expected call.

    The answers are compared only if the tool and the arguments match.
    """
    if wanted.tool != made.tool:
        return [f"{made.tool} was called, not {wanted.tool}"]
    if any(argument_faults(wanted, made, tools.get(made.tool, {}))):
        return [f"{made.tool} was called with other arguments"]
    if made.failed:
        return [f"{made.tool} failed: {made.answer[:_SHOWN]!r}"]
    return [f"the answer of {made.tool} does not say {text!r}" for text in wanted.says if text not in made.answer]


def _explain(match: _Match, calls: Sequence[MadeCall], tools: Tools, choices: tuple[ToolChoice, ...]) -> Judgment:
    wanted = match.missing[0]
    same = [one for one in match.others if one.tool == wanted.tool]
    if not same:
        said = "no-call" if not calls else "wrong-tool"
        others = list(dict.fromkeys(one.tool for one in match.others))
        more = f" and {len(others) - _TOOLS} more" if len(others) > _TOOLS else ""
        instead = ", ".join(others[:_TOOLS]) + more or "nothing"
        return Judgment(
            said, (f"{wanted.tool} was expected, and {instead} {'were' if len(others) > 1 else 'was'} called",), choices
        )
    faults = [list(argument_faults(wanted, one, tools.get(one.tool, {}))) for one in same]
    if all(faults):
        nearest = min(faults, key=len)
        words = tuple(_fault_words(one) for one in nearest)
        return Judgment("wrong-arguments", words, choices, tuple(nearest))
    right = next(one for one, wrong in zip(same, faults, strict=True) if not wrong)
    answered = _call_faults(wanted, right, tools)
    return Judgment("wrong-answer", tuple(answered) or (f"{wanted.tool} was called too early",), choices)


def _choices(match: _Match, calls: Sequence[MadeCall]) -> tuple[ToolChoice, ...]:
    left = [one.tool for one in calls]
    kept: dict[int, str] = {}
    for number, wanted in enumerate(match.way):
        if wanted.tool in left:
            left.remove(wanted.tool)
            kept[number] = wanted.tool
    others = iter([name for name in left if name not in {one.tool for one in match.way}])
    return tuple(
        ToolChoice(wanted.tool, kept[number] if number in kept else next(others, NO_TOOL))
        for number, wanted in enumerate(match.way)
    )


def _writes(made: MadeCall, tools: Tools) -> bool:
    hints = tools.get(made.tool, {}).get("annotations") or {}
    return not made.failed and hints.get("readOnlyHint") is not True


def argument_faults(wanted: ExpectedCall, made: MadeCall, tool: Mapping[str, Any]) -> Iterator[WrongArgument]:
    """Yield the arguments of a call that differ from the expected arguments; a default value may be missing."""
    if made.arguments is None:
        yield WrongArgument(made.tool, "", "unreadable")
        return
    for field, kind, expected, given in _differences(
        dict(wanted.arguments), made.arguments, tool.get("inputSchema"), "", frozenset(wanted.free)
    ):
        yield WrongArgument(made.tool, field, kind, _short(expected), _short(given))


def _differences(
    wanted: Mapping[str, Any], given: Mapping[str, Any], schema: Any, place: str, free: frozenset[str]
) -> Iterator[tuple[str, str, Any, Any]]:
    parts = properties_of(schema)
    for name in dict.fromkeys((*wanted, *given)):
        part, own = parts.get(name), f"{place}{name}"
        default = part.get("default", _ABSENT) if isinstance(part, Mapping) else _ABSENT
        if name not in given:
            if not _same(wanted[name], default):
                yield own, "missing", wanted[name], _ABSENT
        elif name not in wanted:
            if not (_same(given[name], default) or given[name] is None):
                yield own, "extra", _ABSENT, given[name]
        elif name not in free:
            yield from _compared(wanted[name], given[name], part, own)


def _compared(wanted: Any, given: Any, schema: Any, place: str) -> Iterator[tuple[str, str, Any, Any]]:
    if isinstance(wanted, Mapping) and isinstance(given, Mapping):
        yield from _differences(wanted, given, schema, f"{place}.", frozenset())
    elif isinstance(wanted, list) and isinstance(given, list) and len(wanted) == len(given):
        for one, other in zip(wanted, given, strict=True):
            yield from _compared(one, other, items_schema_of(schema), f"{place}[]")
    elif not _same(wanted, given):
        yield place, "different", wanted, given


def _same(first: Any, second: Any) -> bool:
    """Return True if two JSON values are equal: 8.50 equals 8.5, but true does not equal 1."""
    if isinstance(first, bool) is not isinstance(second, bool):
        return False
    return bool(first == second)


def _short(value: Any) -> str:
    return "" if value is _ABSENT else json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN]


def _fault_words(one: WrongArgument) -> str:
    if one.kind == "unreadable":
        return f"the arguments of {one.tool} are not a JSON object"
    if one.kind == "different":
        return f"{one.tool}: {one.field} is {one.given}, and {one.expected} was expected"
    if one.kind == "missing":
        return f"{one.tool}: {one.field} is missing"
    return f"{one.tool}: {one.field} is superfluous: {one.given}"
