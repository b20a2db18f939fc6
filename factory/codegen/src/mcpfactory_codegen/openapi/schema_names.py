"""Names for shared schemas: unique, made of `[A-Za-z0-9._-]`, and the document's own wherever it has one."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

from mcpfactory_codegen.openapi.references import Place

__all__ = ["SchemaNames", "Variant"]

Variant = str
""""" for a schema as it stands, "request" without read-only, "response" without write-only properties, "base" see cycles.py."""

_GENERIC: Final = frozenset(
    {
        "allOf", "anyOf", "oneOf", "items", "properties", "schema", "schemas", "content", "components", "definitions", "$defs",
        "paths", "parameters", "responses", "requestBody", "requestBodies", "headers", "additionalProperties",
    }
)  # fmt: skip


class SchemaNames:
    """Gives every (place, variant) a name, once."""

    def __init__(self, named: Any, pointer: str) -> None:
        """`named` is the document's own map of schemas, which stands at `pointer`: their names are taken first."""
        self._names: dict[tuple[Place, Variant], str] = {}
        self._taken: set[str] = set()
        if isinstance(named, dict):
            for key in named:
                place = Place("", pointer).down(key)
                self._names[place, ""] = self._unique(str(key))

    def claim(self, place: Place, variant: Variant) -> str:
        """Return the name of a schema; the same one each time."""
        if (known := self._names.get((place, variant))) is not None:
            return known
        wish = f"{self.claim(place, '')}_{variant}" if variant else _wish(place)
        name = self._names[place, variant] = self._unique(wish)
        return name

    def variant_of(self, name: str, variant: Variant) -> str:
        """Return a new name that says what it was made from."""
        return self._unique(f"{name}_{variant}")

    def _unique(self, wish: str) -> str:
        name = wish = re.sub(r"[^A-Za-z0-9._-]+", "_", wish).strip("_")[:100] or "schema"
        number = 2
        while name in self._taken:
            name = f"{wish}_{number}"
            number += 1
        self._taken.add(name)
        return name


def _wish(place: Place) -> str:
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in place.pointer.split("/")[1:]]
    telling = [token for token in tokens if token not in _GENERIC and "/" not in token and not token.isdigit()]
    if telling:
        return "_".join(telling[-2:]) if tokens[0] == "paths" else telling[-1]
    file = unquote(place.part).rstrip("/").rpartition("/")[2]
    return file.partition("?")[0].rpartition(".")[0] or file or "schema"
