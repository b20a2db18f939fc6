"""`additionalProperties: false` beside a composition, or a required member that it excludes: what its author means is `unevaluatedProperties: false`.

Taken literally it admits nothing but the `properties` written in the same object, so that no value has both those and what
`allOf` adds. Many validators do not know `unevaluatedProperties`, and so such an object is left open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mcpfactory_codegen.ir import Problems
from mcpfactory_codegen.openapi.references import LocatedNode, Location, References, UnresolvedError

__all__ = ["Closing"]


class Closing:
    """Finds the closed objects of one document that other parts of the same value add properties to, and opens them.

    `siblings`: whether what stands beside a `$ref` counts.
    """

    def __init__(self, references: References, problems: Problems, *, siblings: bool) -> None:
        self._references = references
        self._problems = problems
        self._siblings = siblings
        self._opened: set[Location] = set()
        self._closed: dict[Location, list[dict[str, Any]]] = {}

    def look(self, node: dict[str, Any], location: Location) -> None:
        """Decide on the object at `location` and on all that it is an `allOf` of. Reports each that is opened, once."""
        whole = LocatedNode(node, location)
        closed = [part for part in self._applied(whole, "allOf") if part.node.get("additionalProperties") is False]
        if not closed:
            return
        known = {name for part in self._applied(whole, "allOf", "anyOf", "oneOf") for name in _own(part.node)}
        known |= {("required", name) for part in closed for name in _demanded(part.node)}
        for part in closed:
            if part.location not in self._opened and (more := sorted(known - _own(part.node))):
                self._open(part.location, [name for _, name in more])

    def apply(self, out: dict[str, Any], location: Location) -> None:
        """Open `out`, the translation of the object at `location`: now, or when a later object turns out to need it."""
        if out.get("additionalProperties") is not False:
            return
        if location in self._opened:
            del out["additionalProperties"]
        else:
            self._closed.setdefault(location, []).append(out)

    def _open(self, location: Location, more: list[str]) -> None:
        self._opened.add(location)
        for out in self._closed.pop(location, ()):
            out.pop("additionalProperties", None)
        message = (
            f"`additionalProperties: false` would refuse {', '.join(more)[:200]}, which the same value has; dropped"
        )
        hint = "write `unevaluatedProperties: false` around the composition (3.1), or list all properties here"
        self._problems.add("schema-closed", str(location.down("additionalProperties")), message, hint)

    def _applied(self, whole: LocatedNode, *keywords: str) -> Iterator[LocatedNode]:
        """Yield the objects that the value is checked by, through references and the lists of these keywords; each once."""
        waiting = [whole]
        seen: set[Location] = set()
        while waiting:
            part = waiting.pop()
            if part.location in seen or not isinstance(part.node, dict):
                continue
            seen.add(part.location)
            reference = part.node.get("$ref")
            if isinstance(reference, str):
                with suppress(UnresolvedError):  # reported where the reference is translated
                    waiting.append(self._references.resolve(reference, part.location))
                if not self._siblings:
                    continue
            yield part
            waiting += part.parts(*keywords)


def _demanded(node: dict[str, Any]) -> set[str]:
    """Return what a closed object demands, and has no place for."""
    required = node.get("required")
    places = node.get("properties")
    if not isinstance(required, list) or node.get("patternProperties"):
        return set()
    return {str(name) for name in required} - {str(name) for name in (places if isinstance(places, dict) else ())}


def _own(node: dict[str, Any]) -> set[tuple[str, str]]:
    """Return what an object allows by itself, as keyword and name."""
    found = set()
    for keyword in ("properties", "patternProperties"):
        written = node.get(keyword)
        found |= {(keyword, str(name)) for name in written} if isinstance(written, dict) else set()
    return found
