"""One schema of a document → JSON Schema 2020-12: OpenAPI's own keywords are replaced, invalid ones dropped and reported.

The result always satisfies the metaschema, and every `$ref` in it is what `name` answered. Nothing is expanded: the cost
is that of the schema as it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.ir import JsonSchema
from mcpfactory_codegen.openapi import repair
from mcpfactory_codegen.openapi.dialect import Dialect
from mcpfactory_codegen.openapi.discriminator import tag_branches
from mcpfactory_codegen.openapi.keywords import ANNOTATIONS, DROPPED, LISTS, MAPS, SCALARS, SCHEMAS, TYPES
from mcpfactory_codegen.openapi.references import Place, References, Target, UnresolvedError
from mcpfactory_codegen.openapi.visibility import Direction, Visibility
from mcpfactory_codegen.problems import Problems

__all__ = ["Spot", "Translator"]

_DEEP: Final = 100
"""Schemas written inside each other. Shared schemas start anew, so this bounds one schema's own text."""
_BUDGET: Final = 6_000_000
"""Schemas translated per document, counting parts that several references reach again."""

Object = dict[str, Any]


class Spot(NamedTuple):
    """Where the translator is: the place in the document, the direction, and what the schemas around it say."""

    place: Place
    direction: Direction
    depth: int = 0
    hidden: frozenset[str] = frozenset()
    """Properties that an enclosing `allOf` hides: they cannot be required."""

    def down(self, *tokens: str | int) -> Spot:
        """Return the spot of a schema written inside this one."""
        return Spot(self.place.down(*tokens), self.direction, self.depth + 1)


class Translator:
    """Translates for one document. `name` gives the `$defs` name of a shared schema in a direction."""

    def __init__(
        self,
        dialect: Dialect,
        references: References,
        visibility: Visibility,
        problems: Problems,
        name: Callable[[Target, Direction], str],
    ) -> None:
        self._dialect = dialect
        self._references = references
        self._visibility = visibility
        self._problems = problems
        self._name = name
        self._left = _BUDGET

    def schema(self, node: Any, spot: Spot) -> JsonSchema:
        """Translate one schema."""
        if isinstance(node, bool):
            return node
        if isinstance(node, str) and node.lower() in {"true", "false", *TYPES}:
            meant = node.lower()
            self._report(
                "schema-invalid", spot.place, f"there is the text {node!r} where a schema should be; read as {meant}"
            )
            return {"type": meant} if meant in TYPES else meant == "true"
        if not isinstance(node, dict):
            kind = "a list" if isinstance(node, list) else "null" if node is None else f"{str(node)[:40]!r}"
            self._report(
                "schema-invalid", spot.place, f"there is {kind} where a schema should be; anything is accepted"
            )
            return {}
        if not self._within_bounds(spot):
            return {}
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(node.get(keyword), str):
                return self._reference(node, keyword, spot)
        result = self._object(node, spot)
        return repair.allow_null(result) if _nullable(node) else result

    def _report(self, code: str, place: Place, message: str, hint: str = "") -> None:
        self._problems.add(code, str(place), message, hint)

    def _within_bounds(self, spot: Spot) -> bool:
        self._left -= 1
        if self._left < 0:
            message = "the schemas of this document reach into each other too often; from here on anything is accepted"
            self._report(
                "schema-budget",
                Place("", ""),
                message,
                "give shared schemas names instead of referring to parts of others",
            )
            return False
        if spot.depth > _DEEP:
            message = f"the schema is nested deeper than {_DEEP} levels; anything is accepted below"
            self._report("schema-deep", spot.place, message, "give the inner schemas names")
            return False
        return True

    def _reference(self, node: Object, keyword: str, spot: Spot) -> JsonSchema:
        beside = {key: value for key, value in node.items() if key != keyword}
        result: Object = {}
        try:
            target = self._last(self._meant(node[keyword], spot.place))
        except UnresolvedError as error:
            self._report(error.code, spot.place.down(keyword), f"{error}; anything is accepted here", error.hint)
        else:
            result = {"$ref": f"#/$defs/{self._name(target, spot.direction)}"}
        if not beside:
            return result
        if not self._dialect.siblings:
            self._report_siblings(beside, spot.place)
            beside = {key: value for key, value in beside.items() if key in ANNOTATIONS or key == "example"}
        result |= self._object(beside, spot)
        return repair.allow_null(result) if _nullable(node) else result

    def _meant(self, reference: str, place: Place) -> Target:
        """Return what a reference means. `#` is the schema that it stands in: nobody means the whole API document by it."""
        if reference != "#" or place.part:
            return self._references.resolve(reference, place)
        tokens = place.pointer.split("/")
        named = self._dialect.schemas.split("/")
        if tokens[: len(named)] == named and len(tokens) > len(named):
            return self._references.resolve("#" + "/".join(tokens[: len(named) + 1]), place)
        raise UnresolvedError("reference-dangling", "the reference '#' means the whole document, which is no schema")

    def _last(self, target: Target) -> Target:
        """Through schemas that are nothing but a reference: A → B → C is C."""
        seen = {target.place}
        while isinstance(target.node, dict) and len(target.node) == 1 and isinstance(target.node.get("$ref"), str):
            target = self._references.resolve(target.node["$ref"], target.place)
            if target.place in seen:
                raise UnresolvedError(
                    "reference-cycle", "the reference leads back to itself", "one of them has to say what it is"
                )
            seen.add(target.place)
        return target

    def _report_siblings(self, beside: Object, place: Place) -> None:
        lost = sorted(key for key in beside if key not in _HARMLESS and not key.startswith("x-"))
        if lost:
            message = f"{', '.join(lost)[:200]} beside a $ref does not count in this version and was dropped"
            self._report("reference-siblings", place, message, "put the reference and the rest into an allOf")

    def _object(self, node: Object, spot: Spot) -> Object:
        if spot.direction and "allOf" in node:
            hidden = spot.hidden | self._visibility.hidden_in(node, spot.place, spot.direction)
            spot = spot._replace(hidden=hidden)
        out: Object = {}
        for key, value in node.items():
            if key in SCALARS:
                self._scalar(out, key, value, spot.place)
            elif key in SCHEMAS:
                self._subschema(out, key, value, spot)
            elif key in LISTS:
                self._list(
                    out, key, value, spot.down(key)._replace(hidden=spot.hidden if key == "allOf" else frozenset())
                )
            elif key in MAPS:
                self._map(out, key, value, spot)
            elif key == "type":
                out["type"] = None  # keeps its place in the order; judged below, for it depends on the rest
            elif key not in DROPPED and not key.startswith("x-"):
                self._report(
                    "schema-unknown-keyword", spot.place.down(key), f"{key[:80]!r} is no keyword of a schema; dropped"
                )
        if foreign := sorted(key for key in node if self._foreign(key, node[key])):
            message = f"{', '.join(foreign)} does not exist in {self._dialect.version}; read as what it means elsewhere"
            self._report("schema-dialect", spot.place, message)
        repair.older_drafts(out, node)
        repair.settle_type(
            out,
            node,
            lambda code, key, message: self._report(code, spot.place.down(key), message),
            nullable=_nullable(node),
        )
        self._required(out, node, spot)
        if "discriminator" in node:
            tag_branches(out, node, spot.place, self._references, self._dialect)
        return out

    def _foreign(self, key: str, value: Any) -> bool:
        """Whether a keyword, or this way to use it, belongs to another version."""
        if key in {"exclusiveMinimum", "exclusiveMaximum"}:
            return isinstance(value, bool) == self._dialect.siblings
        if self._dialect.siblings:
            return key == "nullable" and value is True
        return key in _NEWER or (key == "type" and (isinstance(value, list) or value == "null"))

    def _scalar(self, out: Object, key: str, value: Any, place: Place) -> None:
        if isinstance(value, bool) and key in {"exclusiveMinimum", "exclusiveMaximum"}:
            return  # the boolean of drafts before 6 says how minimum and maximum are meant; see repair.older_drafts
        if key in {"title", "description"} and isinstance(value, dict):
            value = self._text_elsewhere(value, place.down(key))
        try:
            out[key] = SCALARS[key](value)
        except ValueError as error:
            elsewhere = value is False or (key == "required" and _read_elsewhere(value, place))
            if value is not None and not elsewhere:  # empty YAML keys harm nobody
                code = "schema-pattern" if key == "pattern" else "schema-keyword"
                self._report(code, place.down(key), f"{key!r} was dropped: {error}")

    def _text_elsewhere(self, value: Any, place: Place) -> Any:
        try:
            return self._references.follow(value, place).node
        except UnresolvedError:
            return value

    def _subschema(self, out: Object, key: str, value: Any, spot: Spot) -> None:
        if key == "items" and isinstance(value, list):  # a tuple, as drafts before 2020-12 wrote it
            self._list(out, "prefixItems", value, spot.down(key))
        elif value is not None or key == "not":
            out[key] = self.schema(value, spot.down(key))

    def _list(self, out: Object, key: str, value: Any, spot: Spot) -> None:
        """`spot` is that of the list."""
        if isinstance(value, list) and value:
            out[key] = [
                self.schema(one, spot._replace(place=spot.place.down(index))) for index, one in enumerate(value)
            ]
        elif value not in (None, []):
            self._report("schema-keyword", spot.place, f"{key!r} was dropped: it has to be a list of schemas")

    def _map(self, out: Object, key: str, value: Any, spot: Spot) -> None:
        at = spot.down(key)
        value, place = self._references.mapping(value, at.place)
        if place != at.place:
            message = f"{key!r} is a reference as a whole, which only schemas can be; it was followed"
            self._report(
                "schema-keyword", at.place, message, "write the properties out, or put the schema into an allOf"
            )
            at = at._replace(place=place)
        if not isinstance(value, dict):
            if value is not None:
                self._report(
                    "schema-keyword", spot.place.down(key), f"{key!r} was dropped: it has to be an object of schemas"
                )
            return
        schemas: Object = {}
        out[key] = schemas
        for name, one in value.items():
            inner = at._replace(place=place.down(name))
            if spot.direction and key == "properties" and self._visibility.hides(one, inner.place, spot.direction):
                continue
            schemas[name] = self.schema(one, inner)

    def _required(self, out: Object, node: Object, spot: Spot) -> None:
        self._required_elsewhere(out, node, spot.place)
        required = out.get("required")
        if not required or not spot.direction:
            return
        written = node.get("properties")
        own = written.keys() - out.get("properties", {}).keys() if isinstance(written, dict) else set()
        out["required"] = [name for name in required if name not in own and name not in spot.hidden]
        if not out["required"]:
            del out["required"]

    def _required_elsewhere(self, out: Object, node: Object, place: Place) -> None:
        """`required: name`, and `required: true` in a property, as the list that both mean."""
        properties = node.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        names = list(out.get("required", ()))
        if isinstance(node.get("required"), str) and node["required"] in properties:
            names.append(node["required"])
            self._report("schema-required", place.down("required"), "`required` is a text; read as a list of one name")
        for name, one in properties.items():
            if isinstance(one, dict) and one.get("required") in (True, "true"):
                names.append(name)
                message = f"the property {name[:80]!r} says `required: true`; read as required by the object"
                self._report("schema-required", place.down("properties", name), message, "write `required: [name]`")
        if names:
            out["required"] = list(dict.fromkeys(names))


_NEWER: Final = frozenset(
    {"const", "contains", "contentEncoding", "contentMediaType", "dependentRequired", "dependentSchemas", "else", "if"}
    | {
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$defs",
    }
)
"""Keywords that came with 3.1."""
_HARMLESS: Final = ANNOTATIONS | DROPPED | {"summary"}


def _read_elsewhere(required: Any, place: Place) -> bool:
    """Whether a `required` that is no list is read by `_required_elsewhere`, here or in the object around."""
    return isinstance(required, str) or (required is True and place.pointer.split("/")[-2:-1] == ["properties"])


def _nullable(node: Object) -> bool:
    """3.0's `nullable`; Swagger 2.0 writes `x-nullable`, and documents of 3.1 that were converted often keep the old word."""
    return node.get("nullable") is True or node.get("x-nullable") is True
