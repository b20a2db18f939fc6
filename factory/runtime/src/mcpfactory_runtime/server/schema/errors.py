"""pydantic-core's errors → one message that a model can act on: which argument, what was wrong, what is allowed.

Union branches appear in the errors' places as labels (`STRICT` or `LENIENT`, then the branch); they are taken out here, and
of several branches that failed the closest one is reported. Values are echoed only when short, links never.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

__all__ = ["LENIENT", "STRICT", "ArgumentError", "explain", "problem", "show", "together"]

STRICT: Final = "\0x"
LENIENT: Final = "\0l"
_MAX_PROBLEMS: Final = 8
_MAX_ECHO: Final = 60
_MISMATCH: Final = 100  # the score of a branch whose kind of value is another

Place = tuple[str | int, ...]

_TEXTS: Final[dict[str, str]] = {
    "missing": "is required",
    "extra_forbidden": "is not a known argument",
    "dict_type": "must be an object",
    "list_type": "must be an array",
    "tuple_type": "must be an array",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "none_required": "must be null",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "recursion_loop": "is nested too deeply",
    "recursion_depth_exceeded": "is nested too deeply",
}
_KIND_ERRORS: Final = frozenset(
    {"type", "dict_type", "list_type", "tuple_type", "string_type", "bool_type", "none_required"}
)


_WITHOUT_VALUE: Final = frozenset({"missing", "forms", "recursion_loop", "recursion_depth_exceeded"})


class ArgumentError(ValueError):
    """The arguments of a call do not fit the tool's input schema. `problems` has one sentence part for each argument."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:_MAX_PROBLEMS])
        more = len(self.problems) - _MAX_PROBLEMS
        if more > 0:
            shown += f"; and {more} more"
        super().__init__(f"Invalid arguments: {shown}{'' if shown.endswith('?') else '.'}")


@dataclass(frozen=True, slots=True)
class _FoundProblem:
    place: Place
    code: str
    text: str
    value: Any

    def below(self, length: int) -> _FoundProblem:
        return _FoundProblem(self.place[length:], self.code, self.text, self.value)


def problem(text: str) -> PydanticCustomError:
    """Return an error whose text is the rest of a sentence that begins with the argument's name: "must be at least 1"."""
    return PydanticCustomError("problem", "{text}", {"text": text})


def together(refusals: Iterable[ValidationError]) -> ValidationError:
    """Return the errors of several validations as those of one."""
    found: list[InitErrorDetails] = []
    for one in (one for refusal in refusals for one in refusal.errors(include_url=False)):
        context = one.get("ctx", {})
        kind = PydanticCustomError(one["type"], "{text}", context) if "text" in context else one["type"]
        found.append({"type": kind, "loc": one["loc"], "input": one["input"], "ctx": context})
    return ValidationError.from_exception_data("value", found)


def show(value: Any) -> str:
    """Return a value as short JSON."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _MAX_ECHO else text[: _MAX_ECHO - 1] + "…"


def explain(error: ValidationError, properties: Sequence[str] = ()) -> ArgumentError:
    """Make the message. `properties` are the tool's arguments, for suggestions."""
    found = [
        _FoundProblem(tuple(one["loc"]), one["type"], _text(one["type"], one.get("ctx", {}), one["msg"]), one["input"])
        for one in error.errors(include_url=False)
    ]
    texts = [_sentence(one, properties) for one in _flatten(found)]
    return ArgumentError(list(dict.fromkeys(texts)))


def _text(code: str, context: dict[str, Any], message: str) -> str:
    if "text" in context:
        return str(context["text"])
    return _TEXTS[code].format_map(context) if code in _TEXTS else message[:1].lower() + message[1:]


def _sentence(one: _FoundProblem, properties: Sequence[str]) -> str:
    name = _name(one.place)
    if one.code == "extra_forbidden":
        close = difflib.get_close_matches(str(one.place[-1]), properties, 1) if len(one.place) == 1 else []
        known = f" (arguments: {', '.join(properties)})" if len(one.place) == 1 and len(properties) <= 20 else ""
        return f"{name} {one.text}" + (f"; did you mean {close[0]}?" if close else known)
    if one.code in _WITHOUT_VALUE:
        return f"{name} {one.text}"
    return f"{name} {one.text}, not {_given(one.value)}"


def _given(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _MAX_ECHO else "what was given"


def _name(place: Place) -> str:
    name = ""
    for part in place[:-1] if place[-1:] == ("[key]",) else place:  # a name, by `propertyNames`
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else str(part)
    if len(name) > 2 * _MAX_ECHO:
        name = f"{name[:_MAX_ECHO]}…{name[-_MAX_ECHO:]}"
    name = name or "the value"
    return f"the name {name}" if place[-1:] == ("[key]",) else name


def _label_at(place: Place) -> int:
    return next((at for at, part in enumerate(place) if isinstance(part, str) and part.startswith("\0")), -1)


def _flatten(found: Iterable[_FoundProblem]) -> list[_FoundProblem]:
    """Take the labels out: per union, the errors of its closest branch, or one that sums the branches up."""
    plain: list[_FoundProblem] = []
    unions: dict[Place, dict[str, list[_FoundProblem]]] = {}
    for one in found:
        at = _label_at(one.place)
        if at < 0:
            plain.append(one)
        else:
            branches = unions.setdefault(one.place[:at], {})
            branches.setdefault(str(one.place[at]), []).append(one.below(at + 1))
    for place, branches in unions.items():
        lenient = {label: errors for label, errors in branches.items() if label.startswith(LENIENT)}
        closest = _closest([_flatten(errors) for errors in (lenient or branches).values()])
        plain += [_FoundProblem(place + one.place, one.code, one.text, one.value) for one in closest]
    return plain


def _closest(branches: list[list[_FoundProblem]]) -> list[_FoundProblem]:
    scores = [_distance(branch) for branch in branches]
    best = min(scores)
    if len(branches) == 1 or (best < _MISMATCH and scores.count(best) == 1):
        return branches[scores.index(best)]
    whole = [one for branch in branches for one in branch if not one.place]
    if len(whole) == sum(map(len, branches)):
        texts = list(dict.fromkeys(one.text.removeprefix("must be ") for one in whole))
        return [_FoundProblem((), "type", f"must be {' or '.join(texts)}", whole[0].value)]
    described = list(
        dict.fromkeys(" and ".join(f"{_name(one.place)} {one.text}" for one in branch[:3]) for branch in branches)
    )
    text = f"fits none of its {len(branches)} forms: {'; or '.join(described[:4])}"
    return [_FoundProblem((), "forms", text, None)]


def _distance(branch: list[_FoundProblem]) -> int:
    """How far the value is from a branch: another kind of value, then another tag (a constant), then other errors."""
    total = 0
    for one in branch:
        if not one.place and one.code in _KIND_ERRORS:
            total += _MISMATCH
        else:
            total += 20 if one.code == "enum" else 1
    return total
