"""Resolution of references and dialects in a JSON Schema. Other documents are never fetched.

Rules (basic, JSON Schema Usage; JSON Schema core, §8 and §9):

1. A schema has a single dialect, `$schema` [default: 2020-12]. An unknown dialect is an error.
2. A reference is relative to the enclosing `$id`. The target must be in the same schema. A reference may be a JSON
   pointer, an anchor, or the `$id` of a part. An unresolvable reference is an error, because every value must be
   checked. The target of a circular reference permits any value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urljoin

from mcpfactory_runtime.schemas.walk import children, unescape


class UnusableSchemaError(ValueError):
    """Error for a schema that cannot be used for validation."""


class SchemaDialect(NamedTuple):
    """Differences from 2020-12 that affect argument checks.

    If `tuples` is True, the schemas in an `items` array apply by position, and `additionalItems` to all further items.
    If `lonely` is True, keywords next to `$ref` are ignored.
    """

    tuples: bool = False
    lonely: bool = False


_CURRENT: Final = SchemaDialect()
_DIALECTS: Final[dict[str, SchemaDialect]] = {
    "json-schema.org/draft/2020-12/schema": _CURRENT,
    "spec.openapis.org/oas/3.1/dialect/base": _CURRENT,
    "json-schema.org/draft/2019-09/schema": SchemaDialect(tuples=True),
    "json-schema.org/draft-07/schema": SchemaDialect(tuples=True, lonely=True),
    "json-schema.org/draft-06/schema": SchemaDialect(tuples=True, lonely=True),
}


class SchemaReferences:
    """Targets of the references in a schema. UnusableSchemaError is raised for an unknown dialect (rule 1)."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.dialect = _dialect(root.get("$schema"))
        self._base = _own_id(root, "")
        # id() of a part → the `$id` that applies to the part, if the `$id` differs from the root's
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {"": root}
        self._anchors: dict[tuple[str, str], Any] = {}
        for part, base in _parts(root, self._resources):
            if "$schema" in part and part is not root and _dialect(part["$schema"]) != self.dialect:
                raise UnusableSchemaError(
                    f"the schema mixes dialects: a part uses {part['$schema']!r}, but the root uses another "
                    "dialect\nhint: write the whole schema in one dialect, preferably 2020-12"
                )
            if base != self._base:
                self._bases[id(part)] = base
            for name in (part.get("$anchor"), part.get("$dynamicAnchor")):
                if isinstance(name, str):
                    self._anchors[base, name] = part
            # Up to draft-07, an `$id` that begins with "#" is an anchor.
            if isinstance(part.get("$id"), str) and part["$id"].startswith("#"):
                self._anchors[base, part["$id"][1:]] = part

    def follow(self, part: Mapping[str, Any]) -> tuple[str, Any]:
        """Follow the `$ref` of a schema part through all further references. Return the target's URI and the target.

        The target of a circular reference is True. An unresolvable reference raises UnusableSchemaError (rule 2).
        """
        seen = set()
        while True:
            base, reference = self._bases.get(id(part), self._base), part["$ref"]
            uri, _, fragment = (base + reference if reference.startswith("#") else _join(base, reference)).partition(
                "#"
            )
            name = f"{uri}#{fragment}"
            if name in seen:
                return name, True
            seen.add(name)
            target = self._at(uri, unquote(fragment), reference)
            if isinstance(target, Mapping) and isinstance(target.get("$ref"), str) and len(target) == 1:
                part = target
                continue
            return name, target

    def _at(self, uri: str, fragment: str, reference: str) -> Any:
        try:
            target = self._resources[uri]
            if fragment and not fragment.startswith("/"):
                return self._anchors[uri, fragment]
            for step in fragment.split("/")[1:]:
                key = unescape(step)
                target = target[int(key) if isinstance(target, list) and key.isdecimal() else key]
        except (KeyError, IndexError, TypeError):
            raise UnusableSchemaError(
                f"the schema refers to {reference!r}, but does not contain this definition\nhint: put the definition below $defs; "
                "external schemas are never fetched"
            ) from None
        return target


def _dialect(uri: Any) -> SchemaDialect:
    if uri is None:
        return _CURRENT
    known = _DIALECTS.get(str(uri).rstrip("#").partition("://")[2])
    if known is None:
        raise UnusableSchemaError(
            f"the schema dialect {uri!r} is not supported\nhint: use 2020-12 (the default), "
            "2019-09, draft-07 or draft-06"
        )
    return known


def _join(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:  # the reference is not a URI, so no part of the schema has this ID
        return reference


def _own_id(part: Mapping[str, Any], base: str) -> str:
    """Return the `$id` of a part, or of the enclosing part, as a URI."""
    own = part.get("$id")
    return _join(base, own).partition("#")[0] if isinstance(own, str) and not own.startswith("#") else base


def _parts(root: Mapping[str, Any], resources: dict[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield each subschema with the URI of its resource."""
    waiting: list[tuple[Any, str]] = [(root, "")]
    seen = set()
    while waiting:
        part, base = waiting.pop()
        if isinstance(part, Mapping) and id(part) not in seen:
            seen.add(id(part))
            base = _own_id(part, base)
            resources.setdefault(base, part)
            yield part, base
            waiting += [(child, base) for _, child in children(part)]
