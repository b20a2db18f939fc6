"""Tools for translation of other documents to OpenAPI 3.1: drafts, schema inference from samples, redaction of secrets.

An inferred response schema must also accept responses that were not sampled. Therefore every value can be null, and
integers can have a fraction. A member is required only if several samples exist and all contain the member.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcpfactory_codegen.credential_parameters import is_secret
from mcpfactory_codegen.ir import Api, ApiOperation, Problem, ProblemCollector, SkippedOperation
from mcpfactory_runtime.schemas.walk import escape, unescape


@dataclass(frozen=True, slots=True)
class Translation:
    """An OpenAPI document translated from another source.

    `origins` maps JSON pointers of `data` to JSON pointers of the source. Values below a pointer are below the
    pointer's origin. `quiet` has the codes of problems that are not reported, because the translation itself causes
    them. `documents` maps paths to documents of GraphQL requests.
    """

    data: dict[str, Any]
    origins: dict[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    skipped: tuple[SkippedOperation, ...] = ()
    quiet: frozenset[str] = frozenset()
    documents: dict[str, str] = field(default_factory=dict)

    def origin(self, pointer: str, source: dict[str, Any]) -> str:
        """Return the source location of a pointer into `data`, or "" for an unknown location."""
        tokens = pointer.split("/")
        for end in range(len(tokens), 0, -1):
            origin = self.origins.get("/".join(tokens[:end]))
            if origin is not None:
                return _existing(source, origin, tokens[end:])
        return ""

    def with_source_pointers(self, api: Api, source: dict[str, Any], before: tuple[Problem, ...]) -> Api:
        """Return the API read from `data`, with pointers into the source, and with all skipped operations and problems.

        `before` has the problems of the source document.
        """
        problems = ProblemCollector()
        problems.extend((*before, *self.problems))
        for one in api.problems:
            if one.code not in self.quiet:
                problems.add(one.code, self.origin(one.pointer, source), one.message, one.hint)
        return replace(
            api,
            operations=tuple(self._operation(one, source) for one in api.operations),
            skipped=(*self.skipped, *(replace(one, pointer=self.origin(one.pointer, source)) for one in api.skipped)),
            problems=problems.all(),
        )

    def _operation(self, operation: ApiOperation, source: dict[str, Any]) -> ApiOperation:
        body, document = operation.body, self.documents.get(operation.path, "")
        if body is not None and document:
            body = replace(body, graphql=document)
        return replace(operation, pointer=self.origin(operation.pointer, source), body=body)


def _existing(source: dict[str, Any], origin: str, rest: list[str]) -> str:
    """Return the origin, extended by the leading tokens of `rest` that exist in the source."""
    node: Any = source
    for token in origin.split("/")[1:]:
        node = _below(node, token)
    for token in rest:
        node = _below(node, token)
        if node is None:
            break
        origin += f"/{token}"
    return origin


def _below(node: Any, token: str) -> Any:
    if isinstance(node, dict):
        return node.get(unescape(token))
    if isinstance(node, list) and token.isdecimal() and int(token) < len(node):
        return node[int(token)]
    return None


class OpenApiDraft:
    """An OpenAPI document during translation."""

    def __init__(self, title: Any, version: Any = "", description: Any = "") -> None:
        self.paths: dict[str, dict[str, Any]] = {}
        self.schemas: dict[str, Any] = {}
        self.schemes: dict[str, Any] = {}
        self.servers: list[dict[str, Any]] = []
        self.tags: dict[str, str] = {}
        self.origins: dict[str, str] = {}
        self.problems = ProblemCollector()
        self.skipped: list[SkippedOperation] = []
        self.info = without_empty(title=title, description=description) | {"version": version or "1"}

    def add(self, method: str, path: str, operation: dict[str, Any], origin: str) -> None:
        """Add an operation, unless it is a duplicate."""
        item = self.paths.setdefault(path, {})
        if method.lower() in item:
            reason = f"{method.upper()} {path} occurs twice"
            self.skip_operation(method, path, str(operation.get("operationId", "")), origin, reason)
            return
        item[method.lower()] = operation
        self.origins[make_json_pointer("paths", path, method.lower())] = origin

    def skip_operation(self, method: str, path: str, name: str, origin: str, reason: str) -> None:
        """Record an operation that cannot become a tool."""
        self.skipped.append(SkippedOperation(method.upper(), path, name, origin, reason))

    def done(self, quiet: frozenset[str] = frozenset(), documents: dict[str, str] | None = None) -> Translation:
        """Return the translation."""
        data = {"openapi": "3.1.0", "info": self.info, "servers": self.servers, "paths": self.paths}
        data["tags"] = [{"name": name, "description": description} for name, description in self.tags.items()]
        data["components"] = without_empty(schemas=self.schemas, securitySchemes=self.schemes)
        return Translation(data, self.origins, self.problems.all(), tuple(self.skipped), quiet, documents or {})


# --- access to values of unknown type ---


def make_json_pointer(*tokens: str | int) -> str:
    """Return a JSON pointer."""
    return "".join(f"/{escape(str(token))}" for token in tokens)


def table(node: Any, key: str) -> dict[str, Any]:
    """Return the object at a key, or {} if the value is missing or not an object."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}


def iterate_objects(node: Any, key: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of the list at a key, each with its index."""
    value = node.get(key) if isinstance(node, dict) else None
    for index, one in enumerate(value if isinstance(value, list) else ()):
        if isinstance(one, dict):
            yield index, one


def text(node: Any, key: str) -> str:
    """Return the string at a key, or "" if the value is missing or not a string."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, str) else ""


def texts(node: Any, key: str) -> list[str]:
    """Return the strings in the list at a key."""
    value = node.get(key) if isinstance(node, dict) else None
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def without_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None or empty."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def parse_json_or_none(written: str) -> Any:
    """Parse a JSON text, or return None for invalid text and for null.

    Numbers that JSON cannot represent become strings.
    """
    try:
        return json.loads(written, parse_constant=str, parse_float=parse_finite_number)
    except (ValueError, RecursionError):
        return None


def parse_finite_number(written: str) -> float | str:
    """Return the number, or its text if the number is not finite."""
    number = float(written)
    return number if math.isfinite(number) else written


_DEPTH: Final = 12  # maximum levels of a schema
_MEMBERS: Final = 200  # maximum members of an object; a larger object is read as a map
_ITEMS: Final = 50  # maximum items to read of one array
_NODES: Final = 20_000  # maximum schemas inferred from all samples
_MAP: Final = 8  # minimum members of a map, if all names are data, such as dates
_ENOUGH: Final = 2  # minimum number of samples from which required members can be inferred
_DATA: Final = re.compile(r"\d+|[0-9a-fA-F]{8,}|[0-9a-fA-F-]{32,}|\d{4}-\d{2}(-\d{2}.*)?|[^\s@]+@[^\s@]+")
_TYPES: Final = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (dict, "object"),
    (list, "array"),
)


def is_data(name: str) -> bool:
    """Return True if a name or a path segment is data, such as a number, a date or a UUID."""
    return _DATA.fullmatch(name) is not None


def infer_schema(samples: Sequence[Any], *, answer: bool = False) -> dict[str, Any]:
    """Infer a schema from sample values, or return {} without samples."""
    return _Inference(answer).of(list(samples), 0)


class _Inference:
    def __init__(self, answer: bool) -> None:
        self._answer = answer
        self._left = _NODES

    def of(self, samples: list[Any], depth: int) -> dict[str, Any]:
        self._left -= 1
        kinds = {next((name for kind, name in _TYPES if isinstance(one, kind)), "null") for one in samples}
        if not kinds - {"null"} or depth > _DEPTH or self._left < 0:
            return {}
        if self._answer and "integer" in kinds:
            kinds = kinds - {"integer"} | {"number"}
        if {"integer", "number"} <= kinds:
            kinds.discard("integer")
        kinds |= {"null"} if self._answer else set()
        schema: dict[str, Any] = {"type": sorted(kinds, key=lambda kind: (kind == "null", kind))}
        if len(kinds) == 1:
            schema["type"] = next(iter(kinds))
        if "object" in kinds:
            schema |= self._members([one for one in samples if isinstance(one, dict)], depth)
        if "array" in kinds:
            items = [item for one in samples if isinstance(one, list) for item in one[:_ITEMS]]
            schema["items"] = self.of(items[: _ITEMS * 4], depth + 1)
        return schema

    def _members(self, samples: list[dict[str, Any]], depth: int) -> dict[str, Any]:
        names = dict.fromkeys(name for one in samples for name in one)
        if len(names) > _MEMBERS or (len(names) >= _MAP and all(map(is_data, names))):
            values = [value for one in samples for value in one.values()]
            return {"additionalProperties": self.of(values[: _ITEMS * 4], depth + 1)}
        properties = {name: self.of([one[name] for one in samples if name in one], depth + 1) for name in names}
        everywhere = [name for name in names if all(name in one for one in samples)]
        needed = everywhere if len(samples) >= _ENOUGH else []
        return {"properties": properties} | ({"required": needed} if needed else {})


REDACTED: Final = "REDACTED"
VARIABLE: Final = re.compile(r"\{\{\s*([^{}]{1,100}?)\s*\}\}")
_EXAMPLE: Final = 200  # maximum characters of an example


def schema_of_example(value: Any) -> dict[str, Any]:
    """Infer the schema of a body from its only example, with the examples of its members."""
    return _with_examples(infer_schema([value]), value)


def _with_examples(schema: dict[str, Any], value: Any) -> dict[str, Any]:
    """Split the example of a body among its members, because each member becomes a separate argument."""
    properties = schema.get("properties", {})
    if not isinstance(value, dict) or not properties:
        return schema
    shown = {
        name: {**_with_examples(known, value.get(name)), **plain_example(name, value.get(name))}
        for name, known in properties.items()
    }
    return {**schema, "properties": shown}


def plain_example(name: str, value: Any) -> dict[str, Any]:
    """Return the example of a text, or {} for a long text, a placeholder or a secret."""
    plain = isinstance(value, str) and 0 < len(value) <= _EXAMPLE and not value.startswith(("<", "{", ":"))
    hidden = VARIABLE.search(str(value)) or REDACTED in str(value) or is_secret(name)
    return {"example": value} if plain and not hidden else {}


_USER: Final = re.compile(r"(?<=://)[^/@\s]*@")


def strip_userinfo(url: str) -> str:
    """Remove user and password from a URL."""
    return _USER.sub("", url)


_SENT: Final = r"((?:Bearer|Basic|Token|Digest)[ \t]+)"
_TOKEN: Final = re.compile(
    r"(?<![\w-])(?:eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"
    r"|(?:(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abps])[-_]|(?-i:AKIA|ASIA|AIza)|ya29\.)(?=[\w.-]*\d)[\w.-]{12,})"
    rf"|(?<![\w-]){_SENT}(?=[^\s\"'\\]*\d)[^\s\"'\\,;{{}}]{{8,}}"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY.*",
    re.IGNORECASE | re.DOTALL,
)
_NAME: Final = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]{0,60})(\\{0,9}[\"']?\s{0,3}[:=]\s{0,3}\\{0,9}[\"']?)")
"""Pattern of a name and the separator before its value, in a query, form, header, cookie, or in escaped JSON."""
_VALUE: Final = re.compile(rf"{_SENT}?([^\s\"'\\&;,<>(){{}}\[\]]+)", re.IGNORECASE)
_LITERAL: Final = re.compile(r"-?\d[\d.eE+-]*|true|false|null")


def redacted(written: str, *, pairs: bool = True) -> str:
    """Replace tokens, and values that follow names of credentials, by `REDACTED`.

    An unquoted number becomes 0, so that JSON remains valid. Without `pairs`, only tokens are replaced, as is suitable
    for prose.
    """
    written = _TOKEN.sub(lambda match: f"{match[1] or ''}{REDACTED}", written)
    if not pairs:
        return written
    done: list[str] = []
    end = 0
    for match in _NAME.finditer(written):
        if match.start() < end or not is_secret(match[1]):
            continue
        value = _VALUE.match(written, match.end())
        if value is None:
            continue
        bare = ":" in match[2] and not match[2].endswith(("'", '"')) and _LITERAL.fullmatch(value[0])
        shown = ("0" if value[0][-1].isdigit() else value[0]) if bare else f"{value[1] or ''}{REDACTED}"
        done += [written[end : match.end()], shown]
        end = value.end()
    return "".join([*done, written[end:]])
