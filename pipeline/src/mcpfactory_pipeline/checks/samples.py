"""Sample arguments for a tool, and values of the stub API to look for in results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Literal, TypeGuard

from mcpfactory_pipeline.checks.evidence import RecordedCall, answer_text
from mcpfactory_pipeline.checks.exchange import is_nested_deeper

Origin = Literal["example", "no arguments", "guess"]

_MAX_DEPTH: Final = 60  # of a schema that values are made from
_MAX_LENGTH: Final = 1_000
_FREE: Final = frozenset({"type", "title", "description", "examples", "example"})
_OTHER_TEXTS: Final = ("Two other words.", "A third text, longer than the others: 12 words? No, fewer!")
_DAY: Final = date(2000, 1, 1).isoformat()
_FORMATS: Final[dict[str, str]] = {
    "date": _DAY,
    "date-time": f"{_DAY}T00:00:00Z",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "12:00:00Z",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample_arguments(schema: Any) -> tuple[dict[str, Any], Origin]:
    """Arguments for a tool with this inputSchema, and where they come from.

    "no arguments" when none are required, "example" when the schema itself names a value for each, else "guess".
    """
    if not isinstance(schema, dict) or is_nested_deeper(schema, _MAX_DEPTH):
        return {}, "guess"
    examples = schema.get("examples")
    if isinstance(examples, list) and examples and isinstance(examples[0], dict):
        return dict(examples[0]), "example"
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not required:
        return {}, "no arguments"
    declared = properties if isinstance(properties, dict) else {}
    parts = {str(key): declared.get(key, {}) for key in required}
    stated = all(isinstance(part, dict) and _stated_value(part)[0] for part in parts.values())
    return {key: sample(part, schema) for key, part in parts.items()}, "example" if stated else "guess"


def other_arguments(schema: Any, made: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return two more sets of arguments with other free texts and numbers, or [] if the schema has neither."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    declared = properties if isinstance(properties, dict) else {}
    free = {key: _others(declared.get(key), value) for key, value in made.items()}
    changed = {key: values for key, values in free.items() if values}
    return [{**made, **{key: values[at] for key, values in changed.items()}} for at in range(2)] if changed else []


def wrong_arguments(schema: Any, made: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return sets of clearly wrong arguments, each with a description of the error.

    A required argument is left out, or replaced by an object if the schema declares it at its root as a string,
    number or boolean.
    """
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    needed = [key for key in required if key in made] if isinstance(required, list) else []
    plain = [key for key in needed if _is_plain(properties.get(key))]
    missing = [(f"without {key!r}", {name: value for name, value in made.items() if name != key}) for key in needed[:1]]
    return missing + [(f"with an object as {key!r}", {**made, key: {"mcpfactory": []}}) for key in plain[:1]]


def other_values(value: Any, *, turn: int) -> Any:
    """Return JSON of the same shape with other values: far from those that were there, and for each `turn` (0, 1) on another side of them."""
    if isinstance(value, dict):
        return {key: other_values(one, turn=turn) for key, one in value.items()}
    if isinstance(value, list):
        return [other_values(one, turn=turn) for one in value]
    if isinstance(value, bool):
        return not value
    if _is_number(value):
        return 100 * abs(value) + 7 if turn == 0 else -100 * abs(value) - 9
    return f"{('other', 'third')[turn]} {value[::-1]}" if isinstance(value, str) else value


def _is_plain(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") in ("string", "integer", "number", "boolean")


def _others(schema: Any, value: Any) -> tuple[Any, ...]:
    """Two more values for a property that says no more of its values than the type; () for every other one."""
    if not isinstance(schema, dict) or schema.keys() - _FREE:
        return ()
    if schema.get("type") == "string" and isinstance(value, str):
        return _OTHER_TEXTS
    if schema.get("type") in ("integer", "number") and _is_number(value):
        return value + 1, value + 7
    return ()


def sample(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return a value for `schema`, whose local references lead into `root`. Best effort: patterns are not solved."""
    return _value(schema, root, 12)


def _value(schema: Any, root: Mapping[str, Any], levels: int) -> Any:
    if not isinstance(schema, dict) or levels == 0:
        return "text"
    known, value = _stated_value(schema)
    if known:
        return value
    for keyword in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(keyword)
        if isinstance(parts, list) and parts:
            return _value(parts[0], root, levels - 1)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _value(_resolve(reference, root), root, levels - 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((item for item in kind if item != "null"), "null")
    return _typed(kind, schema, root, levels)


def _typed(kind: Any, schema: Mapping[str, Any], root: Mapping[str, Any], levels: int) -> Any:
    if kind == "object" or (kind is None and "properties" in schema):
        declared = schema.get("properties")
        properties = declared if isinstance(declared, dict) else {}
        required = schema.get("required")
        keys = required if isinstance(required, list) else []
        return {str(key): _value(properties.get(key, {}), root, levels - 1) for key in keys}
    if kind == "array":
        return [
            _value(schema.get("items", {}), root, levels - 1) for _ in range(min(_count(schema.get("minItems")), 10))
        ]
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    return {"boolean": True, "null": None}[kind] if kind in ("boolean", "null") else _text(schema)


def _stated_value(schema: Mapping[str, Any]) -> tuple[bool, Any]:
    """Return True and the value if the schema itself names a value."""
    for keyword in ("const", "default", "example"):
        if keyword in schema:
            return True, schema[keyword]
    for keyword in ("examples", "enum"):
        values = schema.get(keyword)
        if isinstance(values, list) and values:
            return True, values[0]
    return False, None


def _number(schema: Mapping[str, Any], *, whole: bool) -> Any:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    value: Any = 1
    if _is_number(low) and value < low:
        value = low
    if _is_number(above) and value <= above:
        value = above + 1
    if _is_number(high) and value > high:
        value = high
    if _is_number(below) and value >= below:
        value = below - 1
    if _is_number(step) and step > 0:
        value = -(-value // step) * step
    return int(value) if whole else value


def _text(schema: Mapping[str, Any]) -> str:
    text = _FORMATS.get(str(schema.get("format")), "text")
    shortest, longest = _count(schema.get("minLength")), schema.get("maxLength")
    text = text.ljust(min(shortest, _MAX_LENGTH), "x")
    return text[:longest] if isinstance(longest, int) and 0 <= longest < len(text) else text


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    value: Any = root
    if not reference.startswith("#"):
        return {}
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        value = value.get(key, {}) if isinstance(value, dict) else {}
    return value


@dataclass(frozen=True, slots=True)
class Arrival:
    """Number of values in the API's answer, paths of those missing in the result, and paths with another value."""

    values: int = 0
    lost: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Return True if none of the values arrives unchanged."""
        return bool(self.lost) and len(self.lost) == self.values


def answered_value(call: RecordedCall) -> Any:
    """Return the JSON that the API answered to a call; None where it answered something else, or in several steps."""
    response = call.response if call.requests else None
    if not isinstance(response, dict) or not str(response.get("content_type", "")).endswith(("/json", "+json")):
        return None
    return response.get("body")


def tells_value(call: RecordedCall) -> bool:
    """Return True if the API answered at least one value; nothing can be lost from an empty object."""
    return any(text != "null" for _, text in _leaves(answered_value(call)))


def arrival(call: RecordedCall) -> Arrival:
    """Compare the API's answer to a call with the text and structured content of its result."""
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
    """Return True if the text contains the API's answer, and the structured content none of its values."""
    body, result = answered_value(call), call.exchange.result or {}
    structured, wanted = result.get("structuredContent"), {text for _, text in _leaves(body) if text != "null"}
    if not isinstance(structured, dict) or not wanted or _as_json(answer_text(call.exchange)) != body:
        return False
    return wanted.isdisjoint({text for _, text in _leaves(structured)})


def plain_values(value: Any) -> Iterator[Any]:
    """Yield every text, number, boolean and null of a JSON value."""
    return (json.loads(text) for _, text in _leaves(value))


def _is_said(leaf: str, text: str) -> bool:
    """Return True if a plain JSON value is in a text, either as JSON or in readable form."""
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
