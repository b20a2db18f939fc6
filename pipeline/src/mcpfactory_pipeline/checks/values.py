"""What of an API's answer reaches the model: the values that the stub upstream answered against those in a tool's result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcpfactory_pipeline.checks.evidence import RecordedCall, answer_text

__all__ = ["Arrival", "answered_value", "arrival", "is_beside", "plain_values", "tells_value"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """How many values the API answered, the paths of those that the model does not get, and of these where it gets another value."""

    values: int = 0
    lost: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether none of the values arrives as it is."""
        return bool(self.lost) and len(self.lost) == self.values


def answered_value(call: RecordedCall) -> Any:
    """Return the JSON that the API answered to a call; None where it answered something else, or in several steps."""
    response = call.response if call.requests else None
    if not isinstance(response, dict) or not str(response.get("content_type", "")).endswith(("/json", "+json")):
        return None
    return response.get("body")


def tells_value(call: RecordedCall) -> bool:
    """Whether the API answered a value: of an empty object nothing can be lost."""
    return any(text != "null" for _, text in _leaves(answered_value(call)))


def arrival(call: RecordedCall) -> Arrival:
    """Return what of the API's answer to a call is in the text or the structured content of its result."""
    body, result = answered_value(call), call.exchange.result or {}
    structured, text = result.get("structuredContent"), answer_text(call.exchange)
    shown = [body if isinstance(body, dict) else {"result": body}, body]
    wanted = set(_leaves(body))
    if (structured is None or structured in shown) and _as_json(text) in shown:
        return Arrival(len(wanted))
    inner = structured.get("result") if isinstance(structured, dict) and not isinstance(body, dict) else structured
    got = {*_leaves(inner), *_leaves(_as_json(text))}
    lost = sorted(leaf for leaf in wanted - got if not _is_said(leaf[1], text))
    places = {there for there, _ in got if there}  # a text as a whole says nothing of where a value would be in it
    return Arrival(len(wanted), tuple(path for path, _ in lost), tuple(path for path, _ in lost if path in places))


def is_beside(call: RecordedCall) -> bool:
    """Whether the text has what the API answered, and the structured content none of it."""
    body, result = answered_value(call), call.exchange.result or {}
    structured, wanted = result.get("structuredContent"), {text for _, text in _leaves(body) if text != "null"}
    if not isinstance(structured, dict) or not wanted or _as_json(answer_text(call.exchange)) != body:
        return False
    return wanted.isdisjoint({text for _, text in _leaves(structured)})


def plain_values(value: Any) -> Iterator[Any]:
    """Yield every text, number, boolean and null of a JSON value."""
    return (json.loads(text) for _, text in _leaves(value))


def _is_said(leaf: str, text: str) -> bool:
    """Whether a plain value of JSON is in a text, as JSON writes it, or as it reads."""
    value = json.loads(leaf)
    if isinstance(value, str):
        return value in text or leaf.strip('"') in text
    return leaf in text or (isinstance(value, float) and value.is_integer() and str(int(value)) in text)


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, text) of every plain value; items of a list share a path, as an order may be changed on purpose."""
    todo = [(path, value)]
    while todo:
        at, one = todo.pop()
        if isinstance(one, dict):
            todo += [(f"{at}.{key}".lstrip("."), inner) for key, inner in one.items()]
        elif isinstance(one, list):
            todo += [(f"{at}[]", inner) for inner in one]
        else:
            yield at, json.dumps(one, ensure_ascii=False)
