"""Arguments of tools that HTTP headers repeat: annotations (`x-mcp-header`), and the headers of a call."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mcpfactory_runtime.schemas.walk import types_of, walk
from mcpfactory_runtime.types import Json

ANNOTATION: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.6.2
_PRIMITIVE: Final = frozenset({"string", "integer", "boolean"})

Path = tuple[str, ...]
"""Names of an argument, and of the objects that contain it, outermost first."""


class HeaderAnnotation(NamedTuple):
    """One annotation. `path` is () at the root of the schema, and below any keyword other than `properties`."""

    header: Any
    path: Path
    types: frozenset[str]

    @property
    def problem(self) -> str:
        """Return why clients must refuse the annotation; "" if it is valid, or if the schema names no type."""
        if not isinstance(self.header, str) or not _TOKEN.fullmatch(self.header):
            return "is not a header name"
        if not self.path:
            return "is not on a property that is reached by `properties` alone"
        named = self.types - {"null"}
        return "" if named <= _PRIMITIVE else f"is on {'.'.join(self.path)}, which is {' or '.join(sorted(named))}"

    @property
    def has_one_type(self) -> bool:
        """Return True if the schema of the argument names exactly one type."""
        return len(self.types) == 1


def header_annotations(schema: Any) -> Iterator[HeaderAnnotation]:
    """Yield the annotations of an input schema."""
    for steps, part in walk(schema):
        if ANNOTATION in part:
            path = tuple(map(str, steps[1::2])) if {*steps[::2]} == {"properties"} else ()
            yield HeaderAnnotation(part[ANNOTATION], path, frozenset(types_of(part)))


def argument_at(arguments: Any, path: Path) -> Any:
    """Return the argument at a path, or None if it is missing."""
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def with_argument(arguments: Json, path: Path, *values: Any) -> Json:
    """Return the arguments with another value at a path; without a value, omit the argument."""
    name, *rest = path
    kept = {key: value for key, value in arguments.items() if key != name}
    if rest:
        return {**kept, name: with_argument(arguments[name], tuple(rest), *values)}
    return {**kept, name: values[0]} if values else kept


def argument_headers(schema: Any, arguments: Any) -> dict[str, tuple[Path, Any]]:
    """Return header → (path, argument) for the arguments of a call that headers repeat."""
    found = {}
    for one in header_annotations(schema):
        value = argument_at(arguments, one.path)
        if not one.problem and isinstance(value, str | int):
            found[f"Mcp-Param-{one.header}"] = (one.path, value)
    return found


def header_text(value: str | int) -> str:
    """Return an argument as the text that its header repeats."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def header_value(text: str, *, encoded: bool = False) -> str:
    """Return a text as a header value: visible ASCII unchanged, other text (or with `encoded`, any text) as base64."""
    if is_header_text(text) and text == text.strip() and not text.startswith("=?") and not encoded:
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def is_header_text(text: str) -> bool:
    """Return True if a header can contain the text unchanged."""
    return text.isascii() and text.isprintable()


def call_headers(schemas: Mapping[str, Any], params: Json) -> dict[str, str]:
    """Return the headers that repeat arguments of a call; `schemas` maps tools to their input schemas."""
    repeated = argument_headers(schemas.get(str(params.get("name"))), params.get("arguments"))
    return {header: header_value(header_text(value)) for header, (_, value) in repeated.items()}
