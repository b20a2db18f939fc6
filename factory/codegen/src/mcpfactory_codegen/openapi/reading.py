"""Shared state of all readers of one document: spec version, references, problems, and node helpers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from openapi_pydantic.v3 import v3_0, v3_1
from pydantic import BaseModel, ValidationError

from mcpfactory_codegen.ir import ApiParameter, JsonSchema, Problems, Response
from mcpfactory_codegen.openapi.references import LocatedNode, Location, References, UnresolvedError
from mcpfactory_codegen.read.document import Document

Direction = Literal["", "request", "response"]
"""Direction of a schema: "request" for data sent, "response" for data received, "" as written."""


@dataclass(frozen=True, slots=True)
class SpecVersion:
    """One version. `shape` "2" is converted object by object to the shapes of 3.x before it is read (swagger2.py)."""

    version: str
    shape: Literal["2", "3"]
    methods: tuple[str, ...]
    schemas: str  # pointer of the named schemas
    schemes: str  # pointer of the security schemes
    siblings: bool  # True if keywords next to a schema's `$ref` count
    objects: Literal["3.0", "3.1"]  # which models of openapi-pydantic check Info, Server, Security Scheme and Parameter
    xml_nodes: bool = False  # is a property that only refers to a schema written under that schema's name in XML?


_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_COMPONENTS: Final = ("/components/schemas", "/components/securitySchemes")

SPEC_VERSIONS: Final[tuple[SpecVersion, ...]] = (
    SpecVersion("2.0", "2", _METHODS[:-1], "/definitions", "/securityDefinitions", False, "3.0"),
    SpecVersion("3.0", "3", _METHODS, *_COMPONENTS, False, "3.0"),
    SpecVersion("3.1", "3", _METHODS, *_COMPONENTS, True, "3.1"),
    SpecVersion("3.2", "3", (*_METHODS, "query"), *_COMPONENTS, True, "3.1", xml_nodes=True),
)


def spec_version(data: dict[str, Any], problems: Problems) -> SpecVersion | None:
    """Return the `SpecVersion` of a document; None (and an error) if its version is unknown."""
    key = "openapi" if "openapi" in data else "swagger"
    written = str(data[key]).strip()
    version = written.lower().removeprefix("v").removeprefix("openapi").strip()
    for row in SPEC_VERSIONS:
        if version == row.version or version.startswith((f"{row.version}.", f"{row.version}-")):
            if version != written.lower() or (key == "swagger") != (row.shape == "2"):
                message = f"`{key}: {written[:40]}` is taken for version {row.version}"
                right = "swagger" if row.shape == "2" else "openapi"
                problems.add(
                    "version-unknown", f"/{key}", message, f"write `{right}: {row.version}` with a patch version"
                )
            return row
    if version == "2" or version.startswith("3"):
        row = SPEC_VERSIONS[0] if version == "2" else SPEC_VERSIONS[-1]
        message = f"the version {version[:40]!r} is not known; read as {row.version}"
        problems.add("version-unknown", f"/{key}", message, f"write {row.version!r} or an exact version")
        return row
    message = f"documents of version {version[:40]!r} cannot be read"
    problems.add(
        "version-unsupported",
        f"/{key}",
        message,
        "convert it to OpenAPI 3.x; Swagger 2.0 and OpenAPI 3.0 to 3.2 are read",
    )
    return None


# --- What all readers of one document share: its spec, references, schemas and problems, and a few small questions ---


class BrokenError(Exception):
    """Something without which an operation cannot be called right; the operation is skipped. Never leaves this package."""

    def __init__(self, code: str, location: Location, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.location = location
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Reading:
    """State of reading one document. The dictionaries cache definitions that several operations reference.

    `translate` returns the schema of a parameter, body or response. Its arguments are the node, its location, and the
    direction in which it is used.
    """

    document: Document
    spec: SpecVersion
    references: References
    problems: Problems
    translate: Callable[[Any, Location, Direction], JsonSchema]
    parameters: dict[Location, ApiParameter | None] = field(default_factory=dict)
    responses: dict[Location, Response] = field(default_factory=dict)
    xml_lists: dict[Location, tuple[frozenset[tuple[str, str]], tuple[LocatedNode, ...]]] = field(default_factory=dict)

    def report(self, code: str, location: Location, message: str, hint: str = "") -> None:
        """Add a problem."""
        self.problems.add(code, str(location), message, hint)

    def follow(self, node: Any, location: Location) -> LocatedNode | None:
        """Return the node, or the target of its `$ref`; None (and a problem) if it cannot be resolved."""
        try:
            return self.references.follow(node, location)
        except UnresolvedError as error:
            self.report(error.code, location.down("$ref"), str(error), error.hint)
            return None

    def text(self, node: Any, location: Location) -> str:
        """Return a text field. Numbers count as text (YAML reads `version: 1.0` so); a `$ref` to a text is followed."""
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            try:
                node = self.references.follow(node, location).node
            except UnresolvedError as error:
                self.report("text-invalid", location, f"{error}; left empty", error.hint)
                return ""
        if isinstance(node, str):
            return node
        if node is None:
            return ""
        if isinstance(node, (int, float)) and not isinstance(node, bool):
            return str(node)
        self.report("text-invalid", location, "there is no text where one should be; left empty")
        return ""

    def example(self, node: dict[str, Any], location: Location) -> Any:
        """Return `example`, or the value of the first of `examples` (3.2 calls it dataValue)."""
        if "example" in node:
            return node["example"]
        examples = node.get("examples")
        if not isinstance(examples, dict):
            return examples[0] if isinstance(examples, list) and examples else None
        for name, one in examples.items():
            try:
                target = self.references.follow(one, location.down("examples", name))
            except UnresolvedError:
                continue  # a missing example does no harm
            if isinstance(target.node, dict):
                for key in ("value", "dataValue"):
                    if key in target.node:
                        return target.node[key]
        return None


# --- the small objects of a document (Info, Server, Security Scheme, Parameter), checked by the models of openapi-pydantic ---
#
# What we read, we read leniently; the models say precisely what else is wrong there. Schemas never go through them: that
# would cost more than all the rest.


Kind = Literal["Info", "Server", "SecurityScheme", "Parameter"]

_OBJECT_CODES: Final[dict[Kind, str]] = {
    "Info": "info-invalid",
    "Server": "server-invalid",
    "SecurityScheme": "security-shape",
    "Parameter": "parameter-shape",
}
_MODELS: Final[dict[tuple[str, Kind], type[BaseModel]]] = {
    ("3.0", "Info"): v3_0.Info,
    ("3.0", "Server"): v3_0.Server,
    ("3.0", "SecurityScheme"): v3_0.SecurityScheme,
    ("3.0", "Parameter"): v3_0.Parameter,
    ("3.1", "Info"): v3_1.Info,
    ("3.1", "Server"): v3_1.Server,
    ("3.1", "SecurityScheme"): v3_1.SecurityScheme,
    ("3.1", "Parameter"): v3_1.Parameter,
}


def check_object(reading: Reading, kind: Kind, node: dict[str, Any], location: Location) -> None:
    """Report what the model says about an object, one warning per field."""
    try:
        _MODELS[reading.spec.objects, kind].model_validate(node)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_context=False, include_input=False):
            field = ".".join(str(part) for part in one["loc"])
            reading.report(_OBJECT_CODES[kind], location.down(*one["loc"][:1]), f"{field or kind}: {one['msg'][:200]}")


def flags(reading: Reading, node: dict[str, Any], location: Location, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the node with strings such as "true" and `yes` converted to booleans."""
    said = {"true": True, "yes": True, "false": False, "no": False}
    found = {
        key: said[node[key].lower()] for key in keys if isinstance(node.get(key), str) and node[key].lower() in said
    }
    for key, value in found.items():
        reading.report(
            "parameter-shape", location.down(key), f"{key} is the text {node[key]!r}; read as {str(value).lower()}"
        )
    return {**node, **found}
