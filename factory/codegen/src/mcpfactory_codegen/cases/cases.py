"""Tests of a generated server: cases (calls with the expected requests and responses) and the files that run them.

Each tool has one case, a call with all arguments. `offers` has the arguments that the tool list must show. `variants`
has calls with only the required arguments, and calls with characters that must be encoded. `refused` has calls with one
invalid argument, which the server must reject. `reads` is True if the call only reads although its HTTP method can
write. `answers` has undocumented server errors, and all documented responses except the usual response.

The arguments of a call have distinct values if possible, so that tests detect swapped arguments. Arrays have two items
to show their serialization.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.cases.expected import expected_request
from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.effects import effect_of, is_certainly_read_only, is_idempotent
from mcpfactory_codegen.inputs import Input, inputs
from mcpfactory_codegen.ir import Api, ApiOperation, JsonSchema, Response, carries_json
from mcpfactory_codegen.naming import Names
from mcpfactory_codegen.text import dump_json, dump_json_rows
from mcpfactory_runtime.schemas.sample import NOTHING, alternative_values, invalid_values, sample, two_item_arrays
from mcpfactory_runtime.schemas.validation import ArgumentValidator, compile_schema
from mcpfactory_runtime.schemas.value_validation import ArgumentError
from mcpfactory_runtime.schemas.walk import definition, items_schema_of, properties_of, required_of, resolve
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.secrets import server_override_variables

# maximum number of tests of each kind (refused calls, answers, variants) for one tool
MAX_CASES_PER_TOOL: Final = 10
MAX_CASES: Final = 12_000  # maximum number of tests of one server
_SAFE: Final = re.compile(r"[A-Za-z0-9._~-]+\Z")
_JSON: Final = re.compile(r"application/([\w.+-]+\+)?json\Z")
_ENCODED: Final = (
    "a/b c&d=e?f#g+é",
    "a c&d?é",
    "a é",
    "é",
)  # all these texts must be encoded in URLs and forms
# first bytes of binary formats, which clients and `validate` check
_BEGINNINGS: Final[dict[str, bytes]] = {
    "application/pdf": b"%PDF-1.7\n",
    "application/zip": b"PK\x03\x04",
    "audio/flac": b"fLaC",
    "audio/ogg": b"OggS",
    "audio/wav": b"RIFF\x0f\x00\x00\x00WAVE",
    "image/gif": b"GIF89a",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/jpg": b"\xff\xd8\xff\xe0",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/webp": b"RIFF\x0f\x00\x00\x00WEBP",
}
_FREE: Final = frozenset(
    {"type", "minLength", "maxLength", "nullable", "title", "description", "default", "example", "examples"}
)
_MADE: Final = "made to fail by a test"
# members of a response that may contain an error message (RFC 9457 §3.1, RFC 6749 §5.2)
_WORDS: Final = ("detail", "message", "error_description", "error", "title")
_STEPS: Final = 9  # number of nearby values to try if an argument would have the same value as an earlier argument
_UNKNOWN: Final = "mcpfactory_unknown"
_TRANSIENT: Final = frozenset({429, 502, 503, 504})
_ONCE: Final = frozenset({"POST", "PATCH"})

Slot = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Callee:
    """The tool of a case, its inputs, and the names that requests need.

    `own` has the slots of inputs that the server fills. `shared` has the slots of merged arguments.
    `bodies` has the samples of shared response schemas, by name.
    """

    operation: ApiOperation
    tool: ApiTool
    items: Sequence[Input]
    arguments: dict[Slot, str]
    own: frozenset[Slot]
    shared: frozenset[Slot]
    validator: ArgumentValidator
    api: Api
    names: Names
    bodies: dict[str, Any]

    def given(self, values: dict[Slot, Any]) -> Json:
        """Return the tool arguments for these input values."""
        named = {self.arguments[slot]: value for slot, value in values.items() if slot not in self.own}
        for name, merged in self.tool.merged.items():
            pieces = [named.pop(member) for member in merged.members if member in named]
            if pieces:
                named[name] = merged.separator.join(map(str, pieces)) if merged.separator else pieces[0]
        return named

    def takes(self, values: dict[Slot, Any]) -> bool:
        """Return True if the tool's schema accepts the values.

        The values come from `sample`, which ignores some rules of `allOf` and `anyOf`.
        """
        given = self.given(values)
        try:
            return self.validator.validate(given) == given
        except ArgumentError:
            return False

    def refuses(self, arguments: Json) -> bool:
        """Return True if the tool's schema rejects these arguments."""
        return not self.validator.accepts(arguments)

    def request(self, values: dict[Slot, Any]) -> Json:
        """Return the request that the API must receive for these values."""
        return expected_request(self.operation, self.items, values, self.api, self.names)


def cases(api: Api, names: Names, tools: Sequence[ApiTool]) -> list[Json]:
    """Return the case of each testable tool, at most `MAX_CASES` tests in total."""
    operations = api.operations_by_key()
    # with too many tools, `MAX_CASES` would remove nearly all variants, refused calls and answers
    more = 4 * len(tools) < 3 * MAX_CASES
    bodies: dict[str, Any] = {}
    callees = (_callee(operations[tool.key], tool, api, names, bodies) for tool in tools)
    built = [case for callee in callees if (case := _case(callee, more=more)) is not None]
    for key in ("refused", "answers", "variants"):  # the least important kind of cases comes first
        for most in range(MAX_CASES_PER_TOOL, -1, -1):
            if most < MAX_CASES_PER_TOOL and count_tests(built) <= MAX_CASES:
                break
            for case in built:
                case[key] = case[key][:most]
    return built


def count_tests(built: Sequence[Json]) -> int:
    """Return the number of tests in these cases."""
    return sum(3 + sum(len(case[name]) for name in ("variants", "refused", "answers")) for case in built)


def untested(built: Sequence[Json], tools: Sequence[ApiTool]) -> dict[str, str]:
    """Return the tools without a case, each with the reason."""
    tested = {case["tool"] for case in built}
    return {
        tool.name: "its request is too complex to predict, or sample arguments cannot be generated"
        for tool in tools
        if tool.name not in tested
    }


def _callee(operation: ApiOperation, tool: ApiTool, api: Api, names: Names, bodies: dict[str, Any]) -> _Callee:
    named = names.operations[operation.key].arguments
    items = inputs(operation, api).items
    sent = {**tool.defaults, **tool.fixed}
    own = frozenset(item.slot for item in items if named[item.slot] in sent)
    arguments = {item.slot: named[item.slot] for item in items}
    members = {member for merged in tool.merged.values() for member in merged.members}
    shared = frozenset(slot for slot, argument in arguments.items() if argument in members)
    validator = compile_schema(tool.input_schema)
    return _Callee(operation, tool, items, arguments, own, shared, validator, api, names, bodies)


def _case(one: _Callee, *, more: bool) -> Json | None:
    sent = {**one.tool.defaults, **one.tool.fixed}  # values that the server sends for omitted arguments
    built: dict[Slot, Any] = {}
    for item in one.items:
        argument = one.arguments[item.slot]
        value = sent[argument] if argument in sent else _sample_of(item, one.api)
        if value is not NOTHING and (argument in sent or argument in one.tool.bindings or item.slot in one.shared):
            built[item.slot] = value
    _share(one, built)
    if any(item.required and item.slot not in built for item in one.items):
        return None
    required = required_of(one.tool.input_schema)
    merged = one.tool.merged
    filled = {member for name in required for member in (merged[name].members if name in merged else (name,))}
    needed = {slot for slot, argument in one.arguments.items() if argument in filled} | one.own
    for chosen in (built.keys(), needed):
        values = {slot: value for slot, value in built.items() if slot in chosen and _is_passed(slot, one)}
        if one.takes(values):
            values = _distinct(one, values)
            if request := one.request(values):
                arguments = one.given(values)
                response = _response(one)
                case: Json = {"tool": one.tool.name, "arguments": arguments, "request": request, "response": response}
                if (
                    not is_certainly_read_only(one.operation.method, one.operation.path)
                    and effect_of(one.operation).kind == "reads"
                ):
                    case["reads"] = True
                if one.operation.method not in _ONCE and not is_idempotent(
                    effect_of(one.operation), one.operation.method
                ):
                    case["once"] = True
                case["offers"] = _listed_arguments(one.tool)
                case["variants"] = list(_variants(one, values, needed)) if more else []
                case["refused"] = list(_refused(one, arguments)) if more else []
                case["answers"] = list(_answers(one, response["status"])) if more else []
                return case
    return None


def _listed_arguments(tool: ApiTool) -> Json:
    required = required_of(tool.input_schema)
    return {
        "required": required,
        "optional": [name for name in properties_of(tool.input_schema) if name not in required],
    }


def _share(one: _Callee, built: dict[Slot, Any]) -> None:
    """Give all members of a merged argument the same value."""
    slots = {argument: slot for slot, argument in one.arguments.items()}
    for merged in one.tool.merged.values():
        members = [slots[member] for member in merged.members if member in slots]
        for slot in members:
            if merged.separator and merged.separator in str(built.get(slot, "")):
                built[slot] = "value"
            elif not merged.separator and slot in built and members[0] in built:
                built[slot] = built[members[0]]


def _is_passed(slot: Slot, one: _Callee) -> bool:
    """Return False for an optional input that is a whole query string, because such an input has no simple sample."""
    return slot[0] != "querystring" or any(item.required for item in one.items if item.slot == slot)


def _sample_of(item: Input, api: Api) -> Any:
    if item.encoding is not None and item.encoding.file:
        text = {"text": "content", "filename": "a.txt"} if item.name else "content"
        schema = item.schema if isinstance(item.schema, dict) else {}
        return [text] if schema.get("type") == "array" else text
    example = item.parameter.example if item.parameter is not None else None
    if isinstance(example, str) and isinstance(item.schema, dict) and item.schema == {"type": "string"} and example:
        value: Any = example
    else:
        value = sample(item.schema, api.root)
    if value is NOTHING and item.required:
        value = sample(item.schema, api.root, lenient=True)
    if item.place == "path" and not (isinstance(value, int) or (isinstance(value, str) and _SAFE.match(value))):
        value = sample(_without_examples(resolve(item.schema, api.root)), api.root)
    if item.place == "path" and value == {}:
        return _members(item, api)
    if item.place == "header" and isinstance(value, str) and not value.isascii():
        return "value"
    return value


def _members(item: Input, api: Api) -> Json:
    """Return an object with its optional members, because {} would make the path segment empty."""
    parts = properties_of(resolve(item.schema, api.root))
    made = {name: sample(part, api.root) for name, part in parts.items()}
    return {name: value for name, value in made.items() if value is not NOTHING}


def _without_examples(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in schema.items() if key not in {"example", "examples", "default"}}


# --- other valid calls ---


def _distinct(one: _Callee, values: dict[Slot, Any]) -> dict[Slot, Any]:
    """Return the call with distinct arguments and arrays of two items, if the tool's schema permits."""
    seen: set[str] = set()
    for item in one.items:
        value = values.get(item.slot, NOTHING)
        if value is NOTHING or item.slot in one.own | one.shared:
            continue
        if item.encoding is None or not item.encoding.file:
            root = one.api.root
            if isinstance(value, list):
                values = _first_taken(one, values, item.slot, two_item_arrays(value, item.schema, root))
            elif dump_json(value) in seen:
                steps = (new for step in range(1, _STEPS) for new in alternative_values(value, item.schema, root, step))
                fresh = (new for new in steps if dump_json(new) not in seen and _fits_place(item, new))
                values = _first_taken(one, values, item.slot, fresh)
        seen.add(dump_json(values[item.slot]))
    return values


def _fits_place(item: Input, value: Any) -> bool:
    return item.place != "path" or not isinstance(value, str) or _SAFE.match(value) is not None


def _first_taken(one: _Callee, values: dict[Slot, Any], slot: Slot, candidates: Iterator[Any]) -> dict[Slot, Any]:
    changed = ({**values, slot: candidate} for candidate in candidates)
    return next((tried for tried in changed if one.takes(tried)), values)


def _variants(one: _Callee, values: dict[Slot, Any], needed: set[Slot]) -> Iterator[Json]:
    fewest = {slot: value for slot, value in values.items() if slot in needed}
    seen = [values]
    starts: Sequence[tuple[str, dict[Slot, Any], Callable[[Input], Sequence[Any]] | None]] = (
        ("required arguments only", fewest, None),
        ("characters that must be encoded", values, lambda item: _encoded(item, values.get(item.slot), one)),
    )
    for title, start, candidates in starts:
        changed = dict(start)
        for item in one.items:
            if candidates and item.slot in changed and item.slot not in one.own | one.shared:
                changed = _first_taken(one, changed, item.slot, iter(candidates(item)))
        if changed not in seen and one.takes(changed) and (request := one.request(changed)):
            seen.append(changed)
            yield {"title": title, "arguments": one.given(changed), "request": request}


def _encoded(item: Input, value: Any, one: _Callee) -> Sequence[Any]:
    """Return values that must be encoded in a path, query or form, or () if the schema restricts the text."""
    schema, parameter = resolve(item.schema, one.api.root), item.parameter
    if item.encoding is not None or not isinstance(schema, dict):
        return ()
    if parameter is not None and (parameter.content_type or parameter.allow_reserved or parameter.style == "segments"):
        return ()
    if isinstance(value, list) and item.place == "path" and _is_free(items_schema_of(schema), one):
        return [[text, *value[1:]] for text in _ENCODED]
    if isinstance(value, dict) and item.place == "path":
        free = [name for name in value if _is_free(properties_of(schema).get(name), one)]
        return [{**value, free[0]: text} for text in _ENCODED] if free else ()
    return _ENCODED if item.place in {"path", "query", "form"} and _is_free(schema, one) else ()


def _is_free(schema: Any, one: _Callee) -> bool:
    schema = resolve(schema, one.api.root)
    return isinstance(schema, dict) and schema.get("type") == "string" and schema.keys() <= _FREE


# --- invalid calls ---


def _refused(one: _Callee, arguments: Json) -> Iterator[Json]:
    """Yield changes that make a call invalid, such as `{"without": argument}` and `{"set": {argument: value}}`."""
    for name in required_of(one.tool.input_schema):
        if one.refuses({key: value for key, value in arguments.items() if key != name}):
            yield {"without": name}
    if one.refuses({**arguments, _UNKNOWN: 1}):
        yield {"set": {_UNKNOWN: 1}}
    rows = [[(one.arguments[item.slot], value) for value in _invalid_for(item, one)] for item in one.items]
    for column in zip_longest(*rows):  # try the first value of each argument, then the second value of each argument
        for name, value in filter(None, column):
            if one.refuses({**arguments, name: value}):
                yield {"set": {name: value}}


def _invalid_for(item: Input, one: _Callee) -> Iterator[Any]:
    file = item.encoding is not None and item.encoding.file
    if one.arguments[item.slot] in properties_of(one.tool.input_schema) and not file:
        yield from invalid_values(item.schema, one.api.root)


# --- responses ---


def _response(one: _Callee) -> Json:
    response = _success(one.operation.responses)
    if response is None and one.operation.method == "HEAD":
        return {"status": 200, "content_type": "", "body": None}  # a response to HEAD has no body (RFC 9110 §9.3.2)
    if response is None:
        return {"status": 200, "content_type": "application/json", "body": {}}
    return _answer(int(response.status) if response.status.isdigit() else 200, response, one)


def _answer(status: int, response: Response, one: _Callee) -> Json:
    media = response.content_type.split(";")[0].strip()
    if not media or status in {204, 205, 304}:
        return {"status": status, "content_type": "", "body": None}
    body = _body(response.schema, one) if response.schema is not None else NOTHING
    if _JSON.match(media):
        return {"status": status, "content_type": media, "body": {} if body is NOTHING else body}
    if "*" not in media and carries_json(media, response.schema, one.api.schemas):
        return {"status": status, "content_type": "application/json", "body": body}
    if media.startswith("text/"):
        return {"status": status, "content_type": media, "body": body if isinstance(body, str) else "text"}
    if (begin := _BEGINNINGS.get(media.lower())) is not None:
        return {"status": status, "content_type": media, "body": {"base64": b64encode(begin + b"content").decode()}}
    return {"status": status, "content_type": media if "*" not in media else "text/plain", "body": "content"}


def _body(schema: JsonSchema, one: _Callee) -> Any:
    name = definition(schema["$ref"]) if isinstance(schema, dict) and schema.keys() == {"$ref"} else ""
    if not name:
        return sample(schema, one.api.root)
    if name not in one.bodies:
        one.bodies[name] = sample(schema, one.api.root)
    return one.bodies[name]


def _success(responses: Sequence[Response]) -> Response | None:
    ranked = sorted(responses, key=lambda response: response.status)
    for response in ranked:
        if response.status.upper().startswith("2"):
            return response
    return next((response for response in ranked if response.status == "default"), None)


def _answers(one: _Callee, usual: int) -> Iterator[Json]:
    """Yield the documented responses except the usual response, then undocumented server errors."""
    documented = {response.status.upper() for response in one.operation.responses}
    stated = {_status(status) for status in documented if status != "DEFAULT"}
    for response in sorted(one.operation.responses, key=lambda response: response.status):
        status = _status(response.status.upper()) if response.status.upper() != "DEFAULT" else 500
        if status == usual or status < 200 or (response.status.upper() == "DEFAULT" and status in stated):
            continue
        answer = _answer(status, response, one)
        if status >= 400 and one.operation.method != "HEAD":
            answer = _with_words(answer)
        # prevent a wait before retries, which would slow down the tests (RFC 9110 §10.2.3)
        yield answer | ({"headers": {"Retry-After": "0"}} if status in _TRANSIENT else {})
    made: Json = {"content_type": "application/json", "body": {"message": _MADE}}
    if one.operation.method != "HEAD":  # a response to HEAD has no body (RFC 9110 §9.3.2)
        made["says"] = _MADE
    if not {"5XX", "500", "DEFAULT"} & documented:
        yield {"status": 500, **made}
    if one.operation.method in _ONCE and not _TRANSIENT & stated:  # the server must not retry POST and PATCH
        yield {"status": 503, **made, "headers": {"Retry-After": "0"}}


def _with_words(answer: Json) -> Json:
    """Put the message that tests look for into the body of a documented failure."""
    body = answer["body"]
    for name in _WORDS if isinstance(body, dict) else ():
        if isinstance(body.get(name), str):
            return {**answer, "body": {**body, name: _MADE}, "says": _MADE}
    return answer


def _status(text: str) -> int:
    return int(text) if text.isdigit() else int(text[0]) * 100 if text[:1].isdigit() else 500


# --- files with the cases and their tests ---


_INIT: Final = '"""Tests generated by mcpfactory from the API document. Do not edit: they are regenerated."""\n'
_SET_ADDRESS: Final = '        patch.setenv(DATA["address"], stub.base_url)\n'
_SET_SERVERS: Final = (
    '        for variable, folder in DATA["servers"].items():\n'
    '            patch.setenv(variable, f"{stub.base_url}{folder}")\n'
)


def test_files(api: Api, names: Names, tools: Sequence[ApiTool], package: str, *, dialect: bool) -> dict[str, str]:
    """Return the files below `tests/_generated`, by path.

    `dialect` means that the server sets a default dialect, so that the tests must select the dialect `standard`.
    """
    module = Path(__file__).with_name("test_tools.txt").read_text("utf-8").replace("PACKAGE", package)
    if api.own_servers:
        module = module.replace(_SET_ADDRESS, f"{_SET_ADDRESS}{_SET_SERVERS}")
    if dialect:
        module = module.replace('profile="full")', 'profile="full", dialect="standard")')
    built = cases(api, names, tools)
    # set all credential variables in tests, because the server refuses calls without credentials
    head: Json = {"environment": sorted(variable for variables in names.variables.values() for variable in variables)}
    head |= {"address": f"{names.prefix}_BASE_URL", "base_url": api.base_url}
    if api.own_servers:
        head["servers"] = dict(server_override_variables(names.prefix, [one.name for one in api.own_servers], ""))
    head["untested"] = untested(built, tools)
    return {
        "tests/_generated/__init__.py": _INIT,
        "tests/_generated/cases.json": dump_json_rows("cases", built, head),
        "tests/_generated/test_tools.py": module,
    }
