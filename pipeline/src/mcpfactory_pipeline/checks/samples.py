"""Sample arguments for a tool, and values of the stub API that must appear in results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, Literal

from mcpfactory_pipeline.checks.evidence import RecordedCall, answer_text
from mcpfactory_pipeline.checks.exchange import BIG_INTEGERS, WireExchange, is_nested_deeper
from mcpfactory_pipeline.checks.jsonschemas import instance_error, schema_error
from mcpfactory_runtime.schemas.sample import NOTHING, author_values, sample
from mcpfactory_runtime.schemas.value_validation import is_number
from mcpfactory_runtime.schemas.walk import properties_of, required_of, resolve, types_of

Origin = Literal["example", "no arguments", "guess"]

_MAX_DEPTH: Final = 60  # levels; deeper parts of a schema get no values
_FREE: Final = frozenset({"type", "title", "description", "examples", "example"})
_MEANINGLESS: Final = "value"  # the sample for a text without restrictions
_MAX_FURTHER: Final = 16  # maximum number of additional valid argument sets per tool
_MAX_EXTREME: Final = 4  # maximum number of argument sets with extreme values per tool
_MAX_NAMED: Final = 8  # maximum values of one enum
_LONG_TEXT: Final = "mcpfactory " * 1_000
# An empty text, an unknown name, and texts with characters beyond the Basic Multilingual Plane. Any cut at a fixed
# number of bytes or of UTF-16 units divides a character in one of the last two texts, except cuts at whole characters.
_ODD_TEXTS: Final = (
    "", "e\u0301 \U0001f98a", "mcpfactory-finds-nothing", "\U0001f98a" * 300, "e" + "\U0001f98a" * 300,
)  # fmt: skip
_EXAMPLE: Final = re.compile(r"\b(?:e\.g\.,?|such as|for example,?) ", re.IGNORECASE)
# Text in quotation marks, or the word after `_EXAMPLE`.
_QUOTED: Final = re.compile(
    rf"""(?<!\w)["'`‘“]([^"'`‘’“”\n]{{1,200}})["'`’”](?!\w)|{_EXAMPLE.pattern}([^\s,;)"'`‘“]*[^\s.,;)"'`‘“])""",
    re.IGNORECASE,
)
_MAX_SEEN: Final = 3  # maximum number of texts from one result
_MAX_TEXTS: Final = 6  # maximum number of texts from all results
_LONGEST_SEEN: Final = 64  # characters; a longer text cannot be a name
_READ: Final = 10_000  # characters; texts are searched only in this part of a result or a description
_OTHER_TEXTS: Final = ("Two other words.", "A third text, longer than the others: 12 words? No, fewer!")


def sample_arguments(schema: Any, description: object = "") -> tuple[dict[str, Any], Origin]:
    """Return arguments for a tool with this inputSchema and `description`, and their origin.

    Texts come from examples in descriptions. An example in the description of the tool is used if only one argument is
    required. The origin is "no arguments" if the schema requires no argument. The origin is "example" if the schema has
    a value for each required argument, otherwise "guess".
    """
    if not isinstance(schema, dict) or is_nested_deeper(schema, _MAX_DEPTH):
        return {}, "guess"
    examples = schema.get("examples")
    if isinstance(examples, list) and examples and isinstance(examples[0], dict):
        return dict(examples[0]), "example"
    declared = properties_of(schema)
    parts = {name: declared.get(name, {}) for name in required_of(schema)}
    if not parts:
        return {}, "no arguments"
    stated = all(isinstance(part, dict) and any(True for _ in author_values(part)) for part in parts.values())
    described = str(description)[:_READ]
    example = _EXAMPLE.search(described) if len(parts) == 1 else None
    tail = described[example.start() :] if example else ""
    made = {name: _guess(part, schema, f"{argument_line(name, described)}\n{tail}") for name, part in parts.items()}
    return made, "example" if stated else "guess"


def argument_line(name: str, description: str) -> str:
    """Return the text after `name:` in a tool's description, such as in the section "Args" of a Python docstring."""
    line = re.compile(rf"^[ \t*`-]*{re.escape(name)}[*`]*(?: \([^()\n]*\))?[ \t]*:[ \t]*(\S.*)$", re.MULTILINE)
    return found[1] if (found := line.search(description[:_READ])) else ""


def quoted_texts(text: str) -> list[str]:
    """Return the texts in quotation marks, and the words after "e.g.", "such as" or "for example"."""
    return list(dict.fromkeys(one for found in _QUOTED.finditer(text) for one in found.groups() if one))


def second_guesses(schema: Any, made: Mapping[str, Any], results: Sequence[WireExchange]) -> list[dict[str, Any]]:
    """Return other values for `made`: a guess for all arguments, then short texts of results for a single text."""
    guess = _second_guess(schema, made, results)
    texts = seen_texts(results) if len(made) == 1 and all(isinstance(one, str) for one in made.values()) else []
    seen = [dict.fromkeys(made, text) for text in (*texts, *(["1"] if texts else []))]
    found = [one for one in ([guess] if guess else []) + seen if one != made and not instance_error(one, schema)]
    return [one for at, one in enumerate(found) if one not in found[:at]]


def seen_texts(results: Iterable[WireExchange]) -> list[str]:
    """Return short texts of results, such as names. Calls without arguments come first, because many return lists."""
    listed = sorted(results, key=lambda one: bool(one.params.get("arguments")))
    texts = (text for one in listed for text in islice(dict.fromkeys(_short_texts(one)), _MAX_SEEN))
    return list(islice(dict.fromkeys(texts), _MAX_TEXTS))


def _short_texts(exchange: WireExchange) -> Iterator[str]:
    texts = (text[:_READ] for text in scalar_values(_result_value(exchange)) if isinstance(text, str))
    parts = (part.strip(" \t\"'.*-") for text in texts for part in re.split(r"[\n,;]", text))
    yield from (part for part in parts if 0 < len(part) <= _LONGEST_SEEN)


def _second_guess(schema: Any, made: Mapping[str, Any], results: Iterable[WireExchange]) -> dict[str, Any] | None:
    """Return `made` with other values; None if no other valid values are known.

    An argument gets the value that results contain under the argument's name, such as an id from a list. Other
    meaningless texts become "1", which many tools accept as an id, a number or an expression.
    """
    found: dict[str, Any] = {}
    for path, text in (leaf for one in results for leaf in _leaves(_result_value(one))):
        found.setdefault(_plain_name(path.rpartition(".")[2]), json.loads(text))
    changed = {**made, **{name: "1" for name, value in made.items() if value == _MEANINGLESS}}
    for name in made:
        plain = _plain_name(name)
        value = found.get(plain, found.get("id") if plain.endswith("id") else None)
        changed |= {name: value} if value is not None else {}
    return changed if changed != made and not instance_error(changed, schema) else None


def _plain_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _result_value(exchange: WireExchange) -> Any:
    structured = (exchange.result or {}).get("structuredContent")
    return structured if structured is not None else _as_json(answer_text(exchange))


def _guess(part: Any, root: Mapping[str, Any], described: str) -> Any:
    """Return the first example in the description of a text, if the schema permits it; otherwise a sample."""
    part = resolve(part, root)
    if isinstance(part, dict) and not any(True for _ in author_values(part)) and types_of(part) == ["string"]:
        text = next(iter(quoted_texts(f"{part.get('description', '')}\n{described}")), "")
        if text and not instance_error(text, part):
            return text
    return sample_value(part, root)


def vary_texts_and_numbers(schema: Any, made: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return two more sets of arguments with other texts and numbers; [] if the schema restricts all of these."""
    declared = properties_of(schema)
    free = {key: _others(declared.get(key), value) for key, value in made.items()}
    changed = {key: values for key, values in free.items() if values}
    return [{**made, **{key: values[at] for key, values in changed.items()}} for at in range(2)] if changed else []


def extra_valid_arguments(
    schema: Any, made: Mapping[str, Any], texts: Sequence[str] = ()
) -> list[tuple[str, dict[str, Any]]]:
    """Return (changed argument, arguments) pairs; each changes one argument of `made` to another valid value.

    The new values are values in the schema, 0, an empty array, both booleans, the given texts, and unusual texts. The
    last pair has 0 for every number, also in arrays, because a tool may divide by a sum or a difference of numbers.
    """
    sets = _with_each(schema, made, partial(_further_values, texts), _MAX_FURTHER)
    zeros = {key: _zeros(value) for key, value in made.items()}
    return sets if zeros == made or instance_error(zeros, schema) else [*sets, ("0 for all numbers", zeros)]


def _zeros(value: Any) -> Any:
    if isinstance(value, list) and value and all(map(is_number, value)):
        return [0, 0]
    return 0 if is_number(value) else value


def extreme_arguments(schema: Any, made: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return pairs like `extra_valid_arguments`, with huge numbers and a long text, which may keep a server busy."""
    return _with_each(schema, made, _extreme_values, _MAX_EXTREME)


def arguments_with_defaults(schema: Any, made: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return pairs like `extra_valid_arguments`; each adds an argument with the schema's default to `made`."""
    added = _with_each(schema, made, lambda part: iter([part["default"]] if "default" in part else []), _MAX_FURTHER)
    return [(title, arguments) for title, arguments in added if len(arguments) > len(made)]


def _with_each(
    schema: Any, made: Mapping[str, Any], values: Callable[[Mapping[str, Any]], Iterator[Any]], most: int
) -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(schema, dict) or is_nested_deeper(schema, _MAX_DEPTH) or schema_error(schema):
        return []
    parts = {key: resolve(part, schema) for key, part in properties_of(schema).items()}
    changes = (
        (key, value)
        for key, part in parts.items()
        if isinstance(part, dict)
        for value in values(part)
        if key not in made or not _is_same(value, made[key])
    )
    sets = ((f"{key}={json.dumps(value, ensure_ascii=False)[:40]}", {**made, key: value}) for key, value in changes)
    return list(islice((one for one in sets if not instance_error(one[1], schema)), most))


def _further_values(texts: Sequence[str], schema: Mapping[str, Any]) -> Iterator[Any]:
    named = [schema.get(keyword) for keyword in ("enum", "examples")]
    yield from (value for values in named if isinstance(values, list) for value in values[:_MAX_NAMED])
    yield from (schema[keyword] for keyword in ("const", "default", "minimum") if keyword in schema)
    kinds = types_of(schema)
    yield from (False, True) if "boolean" in kinds else ()
    yield from ([], _shortest(schema)) if "array" in kinds else ()
    yield from (0,) if kinds in (["integer"], ["number"]) else ()
    yield from (*texts, *_ODD_TEXTS) if _is_free_text(schema) else ()


def _shortest(schema: Mapping[str, Any]) -> Any:
    """Return an array with the smallest permitted number of items, but at least one item."""
    value = sample_value(schema, schema)
    return value[: max(1, schema.get("minItems", 1))] if isinstance(value, list) else value


def _extreme_values(schema: Mapping[str, Any]) -> Iterator[Any]:
    kinds = types_of(schema)
    if "maximum" in schema:
        yield schema["maximum"]
    yield from BIG_INTEGERS if kinds == ["integer"] else ()
    yield from (_LONG_TEXT,) if _is_free_text(schema) else ()


def _is_free_text(schema: Mapping[str, Any]) -> bool:
    """Return True if a schema accepts any text.

    The answer is False for a pattern, because patterns may need exponential time.
    """
    free = "string" in types_of(schema) and schema.keys().isdisjoint(("enum", "format"))
    return free and '"pattern' not in json.dumps(schema)


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


def vary_json_values(value: Any, *, turn: int) -> Any:
    """Return JSON of the same shape with different values; `turn` (0 or 1) selects one of two sets of values."""
    if isinstance(value, dict):
        return {key: vary_json_values(one, turn=turn) for key, one in value.items()}
    if isinstance(value, list):
        return [vary_json_values(one, turn=turn) for one in value]
    if isinstance(value, bool):
        return not value
    if is_number(value):
        return 100 * abs(value) + 7 if turn == 0 else -100 * abs(value) - 9
    return f"{('other', 'third')[turn]} {value[::-1]}" if isinstance(value, str) else value


def _others(schema: Any, value: Any) -> tuple[Any, ...]:
    """Return two more values for a property whose schema has only a type; otherwise ()."""
    if not isinstance(schema, dict) or schema.keys() - _FREE:
        return ()
    if schema.get("type") == "string" and isinstance(value, str):
        return _OTHER_TEXTS
    # A larger number may be read as infinity, or have too many digits.
    if schema.get("type") in ("integer", "number") and is_number(value) and abs(value) < BIG_INTEGERS[0]:
        return value + 1, value + 7
    return ()


def sample_value(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return the simplest value for a schema, or a string if none is known; references point into `root`."""
    value = sample(schema, root, minimal=True)
    return _MEANINGLESS if value is NOTHING else value


def consent_form_values(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form values of a person who agrees: true for booleans, samples for other required members."""
    needed = required_of(schema)
    return {
        name: True if types_of(part) == ["boolean"] else sample_value(part, schema)
        for name, part in properties_of(schema).items()
        if name in needed or types_of(part) == ["boolean"]
    }


@dataclass(frozen=True, slots=True)
class ValueComparison:
    """Number of values in the API's answer, and paths of the values that the result lacks or changes."""

    values: int = 0
    lost: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Return True if every value changes before it arrives."""
        return bool(self.lost) and len(self.lost) == self.values


def api_answer_value(call: RecordedCall) -> Any:
    """Return the JSON that the API answered to a call; None if the API returned no JSON or got several requests."""
    response = call.response if call.requests else None
    if not isinstance(response, dict) or not str(response.get("content_type", "")).endswith(("/json", "+json")):
        return None
    return response.get("body")


def has_answer_value(call: RecordedCall) -> bool:
    """Return True if the API's answer has at least one value. An empty object has no value that a tool could lose."""
    return any(text != "null" for _, text in _leaves(api_answer_value(call)))


def compare_with_answer(call: RecordedCall) -> ValueComparison:
    """Compare the API's answer with the text and the structured content of the tool's result."""
    body, result = api_answer_value(call), call.exchange.result or {}
    structured, text = result.get("structuredContent"), answer_text(call.exchange)
    shown = [body if isinstance(body, dict) else {"result": body}, body]
    wanted = set(_leaves(body))
    if (structured is None or structured in shown) and _as_json(text) in shown:
        return ValueComparison(len(wanted))
    inner = structured.get("result") if isinstance(structured, dict) and not isinstance(body, dict) else structured
    got = {*_leaves(inner), *_leaves(_as_json(text))}
    lost = sorted(leaf for leaf in wanted - got if not _is_said(leaf[1], text))
    places = {there for there, _ in got if there}  # the path "" means text without structure
    return ValueComparison(
        len(wanted), tuple(path for path, _ in lost), tuple(path for path, _ in lost if path in places)
    )


def is_answer_only_text(call: RecordedCall) -> bool:
    """Return True if the text contains the API's answer, but the structured content contains none of its values."""
    body, result = api_answer_value(call), call.exchange.result or {}
    structured, wanted = result.get("structuredContent"), {text for _, text in _leaves(body) if text != "null"}
    if not isinstance(structured, dict) or not wanted or _as_json(answer_text(call.exchange)) != body:
        return False
    return wanted.isdisjoint({text for _, text in _leaves(structured)})


def scalar_values(value: Any) -> Iterator[Any]:
    """Yield every text, number, boolean and null in a JSON value."""
    return (json.loads(text) for _, text in _leaves(value))


def _is_said(leaf: str, text: str) -> bool:
    """Return True if the text contains a plain JSON value, as JSON or in readable form."""
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
    """Yield (path, text) of each plain value.

    All items of a list have the same path, because tools may reorder items.
    """
    todo = [(path, value)]
    while todo:
        at, one = todo.pop()
        if isinstance(one, dict):
            todo += [(f"{at}.{key}".lstrip("."), inner) for key, inner in one.items()]
        elif isinstance(one, list):
            todo += [(f"{at}[]", inner) for inner in one]
        else:
            yield at, json.dumps(one, ensure_ascii=False)
