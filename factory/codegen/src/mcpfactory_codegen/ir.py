"""Intermediate form between API documents and generated code: immutable and JSON-serializable.

  Every schema is JSON
Schema 2020-12, converted from the dialects of Swagger 2.0 and OpenAPI 3.0. Every `$ref` is `#/$defs/<name>` and points
into `Api.schemas`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from mcpfactory_runtime.schemas.walk import resolve_definition
from mcpfactory_runtime.upstream.encoding import is_json, media_type
from mcpfactory_runtime.upstream.operation import OAuthFlow, ParameterLocation, QueryStyle, ServerAddress, Style, Xml

JsonSchema = dict[str, Any] | bool

MARK_PREFIXES: Final = ("x-mcp", "x-speakeasy-mcp")
"""Prefixes of the extensions that mark operations for use by models."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in an API document, or an omitted part. Problems are collected, never raised.

    The level "error" means that the document's element at `pointer` was left out. The level "warning" means that the
    element was kept with an assumption or a repair. `code` is stable and documented in docs/reference/problems.md.
    `pointer` is a JSON pointer into the document (RFC 6901), or `file#pointer` for another file. `line` is the line of
    the element in its file, or 0 if unknown.
    """

    level: Literal["error", "warning"]
    code: str
    pointer: str
    message: str
    hint: str = ""
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the problem as plain data."""
        fields = ("level", "code", "pointer", "line", "message", "hint")
        return {name: getattr(self, name) for name in fields}


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """A parameter of an operation.

    If `style` is "" or `explode` is None, the default for the parameter's place applies. `nested` has the styles of
    arrays in the array.
    """

    place: ParameterLocation
    name: str
    schema: JsonSchema
    required: bool = False
    description: str = ""
    deprecated: bool = False
    style: Style = ""
    explode: bool | None = None
    allow_reserved: bool = False
    content_type: str = ""
    nested: tuple[QueryStyle, ...] = ()
    example: Any = None


@dataclass(frozen=True, slots=True)
class Encoding:
    """Serialization of one property of a form or multipart body (OpenAPI 3.1 §4.8.15)."""

    content_type: str = ""
    style: Literal["", QueryStyle] = ""
    explode: bool | None = None
    allow_reserved: bool = False
    file: bool = False
    nested: tuple[QueryStyle, ...] = ()


@dataclass(frozen=True, slots=True)
class ApiBody:
    """The request body in the selected media type. `schema` has no read-only properties.

    `xml` is the root of an XML body, and `shapes` has the XML types that the root references. `graphql` is the document
    of a GraphQL request. The properties of a GraphQL request's `schema` are the variables of the request.
    `alternatives` has other media types of a raw body, which a file argument can select.
    """

    content_type: str
    schema: JsonSchema
    required: bool = False
    description: str = ""
    alternatives: tuple[str, ...] = ()
    encoding: dict[str, Encoding] = field(default_factory=dict)
    example: Any = None
    xml: Xml | None = None
    shapes: tuple[tuple[str, Xml], ...] = ()
    graphql: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """One documented response. `status` is a code such as "200", a range such as "2XX", or "default".

    `schema` is None if the body is absent or not described. `headers` has the header names in lower case. `lists` has
    the pairs of element names that mark lists in XML (`Operation.lists`).
    """

    status: str
    description: str = ""
    content_type: str = ""
    schema: JsonSchema | None = None
    example: Any = None
    headers: tuple[str, ...] = ()
    lists: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ApiSecurityScheme:
    """A security scheme, reduced to the way in which the credential is sent.

    `flows` has the supported ways to get a token of an `oauth2` scheme. An OAuth scheme without supported flows has the
    kind `bearer`. `service` is the service name in an `awsSigV4` signature, or "" if the host alone identifies the
    service.
    """

    name: str
    kind: Literal["apiKey", "basic", "bearer", "oauth2", "mutualTLS", "awsSigV4"]
    place: Literal["", "query", "header", "cookie"] = ""
    parameter: str = ""
    description: str = ""
    note: str = ""
    flows: tuple[OAuthFlow, ...] = ()
    links: tuple[str, ...] = ()
    service: str = ""

    @property
    def credential_location(self) -> tuple[str, str]:
        """Return the place (such as header) and the name under which the credential is sent.

        A request can contain each place and name only once.
        """
        if self.kind == "mutualTLS":
            return "connection", ""
        place, name = (self.place or "header", self.parameter) if self.kind == "apiKey" else ("header", "Authorization")
        return place, name.lower() if place == "header" else name


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One operation, identified by `(method, path)`. `method` is upper case.

    `label` is the label of the operation's document if the API has several documents. `scopes` has the OAuth scopes
    that `security` requires, by scheme name. `server` is a name from `Api.own_servers`, or "" for the root.
    `extensions` has the fields whose names start with one of `MARK_PREFIXES`. Extensions of the document come first,
    and extensions of the operation come last.
    """

    method: str
    path: str
    pointer: str
    operation_id: str = ""
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    deprecated: bool = False
    parameters: tuple[ApiParameter, ...] = ()
    body: ApiBody | None = None
    responses: tuple[Response, ...] = ()
    security: tuple[tuple[str, ...], ...] = ()
    scopes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    server: str = ""
    external_docs: str = ""
    extensions: dict[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def key(self) -> str:
        """Return the identity as text, such as "GET /books/{id}", with the label if the document has a label."""
        return operation_key(self.method, self.path, self.label)

    def skipped(self, reason: str) -> SkippedOperation:
        """Return the `SkippedOperation` record of this operation."""
        return SkippedOperation(self.method, self.path, self.operation_id, self.pointer, reason, self.label)


@dataclass(frozen=True, slots=True)
class SkippedOperation:
    """An operation of the document that is not in `Api.operations`, with the reason."""

    method: str
    path: str
    operation_id: str
    pointer: str
    reason: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Api:
    """A whole API.

    `servers` has the absolute base URLs of the API, preferred first. `own_servers` has the servers that operations use
    instead of the root, sorted by name.
    """

    title: str
    version: str = ""
    description: str = ""
    servers: tuple[str, ...] = ()
    operations: tuple[ApiOperation, ...] = ()
    schemas: dict[str, JsonSchema] = field(default_factory=dict)
    security_schemes: tuple[ApiSecurityScheme, ...] = ()
    tag_descriptions: dict[str, str] = field(default_factory=dict)
    skipped: tuple[SkippedOperation, ...] = ()
    problems: tuple[Problem, ...] = ()
    external_docs: str = ""
    own_servers: tuple[ServerAddress, ...] = ()

    @property
    def base_url(self) -> str:
        """Return the first URL of the root, or ""."""
        return next(iter(self.servers), "")

    @property
    def root(self) -> dict[str, Any]:
        """Return the JSON document into which `$ref`s of schemas point."""
        return {"$defs": self.schemas}

    def operations_by_key(self) -> dict[str, ApiOperation]:
        """Return the operations by their identity."""
        return {operation.key: operation for operation in self.operations}


def operation_key(method: str, path: str, label: str = "") -> str:
    """Return the identity of an operation as text."""
    return f"{label}: {method} {path}" if label else f"{method} {path}"


def split_label(text: str) -> tuple[str, str]:
    """Return the label at the start of a key or pointer ("" if missing), and the rest."""
    match = _LABELLED.match(text)
    return (match[1], match[2]) if match else ("", text)


# --- Problem codes, and the collector of problems ---
#
# Codes are stable, because users filter by them. A new code also needs a section in docs/reference/problems.md.


Level = Literal["error", "warning"]

_ERRORS: Final = """
    version-unsupported too-many-operations reference-dangling reference-cycle reference-refused paths-invalid
    path-invalid operation-invalid operation-duplicate operation-internal-error parameter-invalid parameter-header
    body-invalid workflow-invalid schema-too-deep schema-budget security-invalid security-undefined security-unsupported
    graphql-invalid overlay-invalid
"""
_WARNINGS: Final = """
    document-encoding document-syntax document-duplicate-key document-tag document-multiple document-text
    version-unknown info-invalid text-invalid webhooks-ignored reference-siblings reference-repaired path-slash
    path-unusual-syntax path-method operation-reference operation-id operation-tags callbacks-ignored parameter-duplicate
    parameter-ignored parameter-undeclared parameter-unused parameter-required parameter-style parameter-schema
    parameter-shape parameter-location parameter-credential body-empty body-media-type body-encoding body-shape body-xml
    head-body response-invalid media-invalid schema-invalid schema-keyword schema-unknown-keyword schema-default
    schema-required schema-type schema-enum schema-bounds schema-closed-object schema-pattern schema-cycle server-invalid
    server-relative server-mock server-missing security-shape security-unapplied security-shared overlay-unmatched
    selection-unmatched profile-empty profile-unknown
"""
PROBLEM_CODES: Final[dict[str, Level]] = {
    **dict.fromkeys(_ERRORS.split(), "error"),
    **dict.fromkeys(_WARNINGS.split(), "warning"),
}

_LABELLED: Final = re.compile(r"([a-z][a-z0-9-]*): (.*)\Z", re.DOTALL)

_MOST: Final[dict[Level, int]] = {"error": 1000, "warning": 50}
"""Limit of problems per code, because a document can repeat the same mistake a thousand times."""


class ProblemCollector:
    """Ordered collector of problems.

    The collector keeps each (code, pointer) once, and at most `_MOST` problems with one code.
    """

    def __init__(self) -> None:
        self._listed: list[Problem] = []
        self._seen: set[tuple[str, str]] = set()
        self._count: dict[str, int] = {}

    def add(self, code: str, pointer: str, message: str, hint: str = "") -> None:
        """Report one problem with a code of PROBLEM_CODES."""
        level = PROBLEM_CODES[code]
        if (code, pointer) in self._seen:
            return
        count = self._count[code] = self._count.get(code, 0) + 1
        if count > _MOST[level]:
            return
        self._seen.add((code, pointer))
        self._listed.append(Problem(level, code, pointer, message, hint))

    def extend(self, problems: tuple[Problem, ...]) -> None:
        """Add problems that were found elsewhere."""
        for problem in problems:
            self.add(problem.code, problem.pointer, problem.message, problem.hint)

    def all(self) -> tuple[Problem, ...]:
        """Return the collected problems, errors first.

        If problems with one code were omitted, one more problem states their number.
        """
        listed = list(self._listed)
        for code, count in self._count.items():
            level = PROBLEM_CODES[code]
            if count > _MOST[level]:
                listed.append(
                    Problem(level, code, "", f"{count - _MOST[level]} more problems of this kind are not listed")
                )
        return tuple(sorted(listed, key=lambda problem: problem.level != "error"))


MISLABELED: Final = re.compile(
    r"text/(plain|html|javascript|x-json)|application/(octet-stream|javascript|x-javascript)"
)
_JSON_LINES: Final = re.compile(r"application/(x-ndjson|ndjson|jsonl|x-jsonlines|json-seq)")


def carries_json(content_type: str, schema: JsonSchema | None, schemas: dict[str, JsonSchema]) -> bool:
    """Return True if the media type is JSON, or if only JSON can match the schema."""
    name = media_type(content_type)
    if name in {"", "*/*"} or is_json(content_type):
        return True
    if schema is None or not (_JSON_LINES.fullmatch(name) or MISLABELED.fullmatch(name)):
        return False
    found = resolve_definition(schema, schemas)
    if _JSON_LINES.fullmatch(name):
        return isinstance(found, dict) and found.get("type") == "array"
    return is_structured(found)


def is_structured(schema: JsonSchema) -> bool:
    """Return True if a schema describes objects or lists. The argument must not be a reference."""
    if not isinstance(schema, dict):
        return False
    return schema.get("type") in ("object", "array") or "properties" in schema or "allOf" in schema
