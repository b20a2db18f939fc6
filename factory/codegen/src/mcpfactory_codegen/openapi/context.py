"""Shared state of all readers of one document: spec version, references, problems, and nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from openapi_pydantic.v3 import v3_0, v3_1
from pydantic import BaseModel, ValidationError

from mcpfactory_codegen.ir import ApiParameter, JsonSchema, ProblemCollector, Response
from mcpfactory_codegen.openapi.references import LocatedNode, Location, References, UnresolvedError, composed
from mcpfactory_codegen.read.document import Document
from mcpfactory_runtime.upstream.encoding import is_json

Direction = Literal["", "request", "response"]
"""Use of a schema: for requests, for responses, or "" for the unchanged schema."""


@dataclass(frozen=True, slots=True)
class SpecVersion:
    """One version of the specification.

    `shape` "2" means that documents must be converted to OpenAPI 3 (`swagger2`).
    """

    version: str
    shape: Literal["2", "3"]
    methods: tuple[str, ...]
    schemas: str  # JSON pointer to the section of named schemas
    schemes: str  # JSON pointer to the section of security schemes
    siblings: bool  # True if keywords next to a schema's `$ref` apply
    objects: Literal["3.0", "3.1"]  # OpenAPI version whose openapi-pydantic models check small objects
    xml_nodes: bool = False  # True if XML elements of a property are named after the referenced schema


_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_COMPONENTS: Final = ("/components/schemas", "/components/securitySchemes")

SPEC_VERSIONS: Final[tuple[SpecVersion, ...]] = (
    SpecVersion("2.0", "2", _METHODS[:-1], "/definitions", "/securityDefinitions", False, "3.0"),
    SpecVersion("3.0", "3", _METHODS, *_COMPONENTS, False, "3.0"),
    SpecVersion("3.1", "3", _METHODS, *_COMPONENTS, True, "3.1"),
    SpecVersion("3.2", "3", (*_METHODS, "query"), *_COMPONENTS, True, "3.1", xml_nodes=True),
)


def spec_version(data: dict[str, Any], problems: ProblemCollector) -> SpecVersion | None:
    """Return the `SpecVersion` of a document, or report an unknown version and return None."""
    key = "openapi" if "openapi" in data else "swagger"
    written = str(data[key]).strip()
    version = written.lower().removeprefix("v").removeprefix("openapi").strip()
    for row in SPEC_VERSIONS:
        if version == row.version or version.startswith((f"{row.version}.", f"{row.version}-")):
            right = "swagger" if row.shape == "2" else "openapi"
            if version != written.lower() or key != right:
                message = f"`{key}: {written[:40]}` is read as version {row.version}"
                hint = f"write `{right}: {row.version}` with a patch version"
                problems.add("version-unknown", f"/{key}", message, hint)
            return row
    if version == "2" or version.startswith("3"):
        row = SPEC_VERSIONS[0] if version == "2" else SPEC_VERSIONS[-1]
        message = f"unknown version {version[:40]!r}; read as {row.version}"
        problems.add("version-unknown", f"/{key}", message, f"write {row.version!r} or an exact version")
        return row
    message = f"documents of version {version[:40]!r} cannot be read"
    hint = "convert it to OpenAPI 3.x; Swagger 2.0 and OpenAPI 3.0 to 3.2 are read"
    problems.add("version-unsupported", f"/{key}", message, hint)
    return None


# --- state of reading one document, and its nodes ---


class UnusableOperationError(Exception):
    """Error for an operation that cannot be called correctly and is therefore skipped."""

    def __init__(self, code: str, location: Location, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.location = location
        self.hint = hint


@dataclass(frozen=True, slots=True)
class ReaderContext:
    """State of reading one document, with caches of definitions that several operations reference.

    `schema` translates the schema of a parameter, body or response. The arguments of `schema` are the value, its
    location, and the direction of its use.
    """

    document: Document
    spec: SpecVersion
    references: References
    problems: ProblemCollector
    schema: Callable[[Any, Location, Direction], JsonSchema]
    parameters: dict[Location, ApiParameter | None] = field(default_factory=dict)
    responses: dict[Location, Response] = field(default_factory=dict)
    xml_lists: dict[Location, tuple[frozenset[tuple[str, str]], tuple[Node, ...]]] = field(default_factory=dict)

    @property
    def root(self) -> Node:
        """Return the node of the whole document."""
        return Node(self, self.document.data, Location("", ""))


Kind = Literal["Info", "Server", "SecurityScheme", "Parameter"]
_OBJECT_CODES: Final[dict[Kind, str]] = {
    "Info": "info-invalid",
    "Server": "server-invalid",
    "SecurityScheme": "security-shape",
    "Parameter": "parameter-shape",
}
_MODELS: Final = {"3.0": v3_0, "3.1": v3_1}
"""Models that validate small objects, but are too slow for schemas."""
_SAID: Final = {"true": True, "yes": True, "false": False, "no": False}
_LEVELS: Final = 8  # maximum levels of nested lists to search for a file


class Node(NamedTuple):
    """A value of the document with its location and context."""

    context: ReaderContext
    value: Any
    location: Location

    @property
    def table(self) -> dict[str, Any]:
        """Return the value if it is an object, else {}."""
        return self.value if isinstance(self.value, dict) else {}

    def at(self, key: str) -> Node:
        """Return the node below a key, or a node with the value None if the key is missing."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(self.context, value, self.location.down(key))

    def members(self) -> Iterator[tuple[str, Node]]:
        """Yield the members of an object as nodes, each with its key."""
        for key, value in self.table.items():
            yield key, Node(self.context, value, self.location.down(key))

    def elements(self) -> Iterator[Node]:
        """Yield the items of a list as nodes."""
        for index, value in enumerate(self.value if isinstance(self.value, list) else ()):
            yield Node(self.context, value, self.location.down(index))

    def with_value(self, value: Any) -> Node:
        """Return the node with another value, such as a repaired value."""
        return Node(self.context, value, self.location)

    def report(self, code: str, message: str, hint: str = "") -> None:
        """Add a problem at this location."""
        self.context.problems.add(code, str(self.location), message, hint)

    def is_object(self, code: str, message: str, hint: str = "", *, null: bool = False) -> bool:
        """Return True for an object. Report any other value. Report None only if `null` is True."""
        if not isinstance(self.value, dict) and (null or self.value is not None):
            self.report(code, message, hint)
        return isinstance(self.value, dict)

    def is_reference(self) -> bool:
        """Return True if the value has the form of a reference."""
        return isinstance(self.table.get("$ref"), str)

    def follow(self) -> Node:
        """Return the node, or the target of its `$ref`, or raise an UnresolvedError."""
        return Node(self.context, *self.context.references.follow(self.value, self.location))

    def target(self) -> Node | None:
        """Return the node or the target of its `$ref`, or report an unresolved reference."""
        try:
            return self.follow()
        except UnresolvedError as error:
            self.context.problems.add(error.code, str(self.location.down("$ref")), str(error), error.hint)
            return None

    def resolved_object(self) -> dict[str, Any]:
        """Return the object behind references, or {} without an object."""
        try:
            return self.follow().table
        except UnresolvedError:
            return {}

    def mapping(self) -> Node:
        """Return the node, or the target of a `$ref` that replaces a map of names."""
        return Node(self.context, *self.context.references.mapping(self.value, self.location))

    def schema(self, direction: Direction) -> JsonSchema:
        """Translate the node as a schema."""
        return self.context.schema(self.value, self.location, direction)

    def composed(self, *keywords: str) -> Iterator[Node]:
        """Yield the resolved object schema, then the schemas in the lists under its `keywords`."""
        for part in composed(self.context.references, LocatedNode(self.value, self.location), *keywords):
            yield Node(self.context, *part)

    def properties(self) -> dict[str, Node]:
        """Return the properties of an object schema, its references and combinations."""
        found: dict[str, Node] = {}
        for part in self.composed("allOf", "anyOf", "oneOf"):
            for name, member in part.at("properties").mapping().members():
                found.setdefault(name, member)
        return found

    def is_file(self, levels: int = _LEVELS) -> bool:
        """Return True if values of a schema, or their items, are raw bytes (OpenAPI 3.0 §4.7.14.2, 3.1 §4.8.14.2)."""
        for part in self.composed("allOf", "anyOf", "oneOf"):
            node, inner = part.value, part.value.get("contentMediaType")
            media = isinstance(inner, str) and not is_json(inner) and not inner.startswith("text/")
            if (
                node.get("format") == "binary"
                or node.get("type") == "file"
                or (media and "contentEncoding" not in node)
            ):
                return True
            if "items" in node and levels and part.at("items").is_file(levels - 1):
                return True
        return False

    def text(self) -> str:
        """Return a text field, with references followed and numbers converted (`version: 1.0` in YAML)."""
        value = self.value
        if self.is_reference():
            try:
                value = self.follow().value
            except UnresolvedError as error:
                self.report("text-invalid", f"{error}; left empty", error.hint)
                return ""
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        self.report("text-invalid", "the value is not a string; left empty")
        return ""

    def example(self) -> Any:
        """Return `example`, or the first value of `examples`."""
        if "example" in self.value:
            return self.value["example"]
        examples = self.at("examples")
        if isinstance(examples.value, list):
            return next(iter(examples.value), None)
        for _, one in examples.members():
            found = one.resolved_object()  # a missing example is not reported
            if key := next((key for key in ("value", "dataValue") if key in found), ""):
                return found[key]
        return None

    def convert_booleans(self, *keys: str) -> Node:
        """Return the node with strings such as "true" and `yes` converted to booleans."""
        texts = {key: text for key in keys if isinstance(text := self.value.get(key), str) and text.lower() in _SAID}
        found = {key: _SAID[text.lower()] for key, text in texts.items()}
        for key, value in found.items():
            message = f"{key} is the string {texts[key]!r}; read as {str(value).lower()}"
            self.at(key).report("parameter-shape", message)
        return self.with_value({**self.value, **found})

    def check(self, kind: Kind, value: dict[str, Any]) -> None:
        """Validate an object with the model of the specification, and report one warning per invalid field."""
        model: type[BaseModel] = getattr(_MODELS[self.context.spec.objects], kind)
        try:
            model.model_validate(value)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_context=False, include_input=False):
                name = ".".join(map(str, one["loc"]))
                message = f"{name or kind}: {one['msg'][:200]}"
                location = self.location.down(*one["loc"][:1])
                self.context.problems.add(_OBJECT_CODES[kind], str(location), message)
