"""What differs between the versions of the specification, as one row each. Nothing else in this package asks for a version.

A document is read as the newest row that its version allows: 3.0 → 3.1 → 3.2 grow by keywords that an older document
simply does not have, so most rows differ only where a keyword has changed its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from mcpfactory_codegen.problems import Problems

__all__ = ["DIALECTS", "Dialect", "dialect_of"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One version. `shape` "2" is converted object by object to the shapes of 3.x before it is read (swagger2.py)."""

    version: str
    shape: Literal["2", "3"]
    methods: tuple[str, ...]
    schemas: str  # pointer of the named schemas
    schemes: str  # pointer of the security schemes
    siblings: bool  # do keywords beside a schema's `$ref` count?
    objects: Literal["3.0", "3.1"]  # which models of openapi-pydantic judge Info, Server, Security Scheme and Parameter
    additional_operations: bool = False
    xml_nodes: bool = False  # is a property that only refers to a schema written under that schema's name in XML?


_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_COMPONENTS: Final = ("/components/schemas", "/components/securitySchemes")

DIALECTS: Final[tuple[Dialect, ...]] = (
    Dialect("2.0", "2", _METHODS[:-1], "/definitions", "/securityDefinitions", False, "3.0"),
    Dialect("3.0", "3", _METHODS, *_COMPONENTS, False, "3.0"),
    Dialect("3.1", "3", _METHODS, *_COMPONENTS, True, "3.1"),
    Dialect("3.2", "3", (*_METHODS, "query"), *_COMPONENTS, True, "3.1", additional_operations=True, xml_nodes=True),
)


def dialect_of(data: dict[str, Any], problems: Problems) -> Dialect | None:
    """Return the row for a document, or None (and an error) when its version is none that we know."""
    key = "openapi" if "openapi" in data else "swagger"
    written = str(data[key]).strip()
    version = written.lower().removeprefix("v").removeprefix("openapi").strip()
    for row in DIALECTS:
        if version == row.version or version.startswith((f"{row.version}.", f"{row.version}-")):
            if version != written.lower() or (key == "swagger") != (row.shape == "2"):
                message = f"`{key}: {written[:40]}` is taken for version {row.version}"
                right = "swagger" if row.shape == "2" else "openapi"
                problems.add(
                    "version-unknown", f"/{key}", message, f"write `{right}: {row.version}` with a patch version"
                )
            return row
    if version == "2" or version.startswith("3"):
        row = DIALECTS[0] if version == "2" else DIALECTS[-1]
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
