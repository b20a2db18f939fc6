"""Translation of one schema of a document to JSON Schema 2020-12.

The result always satisfies the metaschema. Every `$ref` in the result is a name of `SharedSchemaQueue`. References are
not expanded, so that the cost depends only on the size of the written schema.

According to JSON Schema, `additionalProperties: false` also excludes properties that `allOf` adds to the same object.
Authors rarely want to exclude properties of `allOf`, and few validators support `unevaluatedProperties`. Therefore
`additionalProperties: false` is dropped in objects with `allOf`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.ir import JsonSchema, ProblemCollector
from mcpfactory_codegen.openapi.context import Direction, SpecVersion
from mcpfactory_codegen.openapi.keywords import (
    ANNOTATIONS,
    DROPPED,
    MEANINGS,
    SCALARS,
    allow_null,
    convert_old_draft_keywords,
    drop_unsatisfiable_bounds,
    move_enum_to_items,
    normalize_type,
)
from mcpfactory_codegen.openapi.references import LocatedNode, Location, References, UnresolvedError, composed
from mcpfactory_codegen.openapi.shared_schemas import HiddenProperties, SchemaNames, SharedSchemaQueue, break_cycles
from mcpfactory_runtime.schemas.walk import APPLICATORS, TYPES, definition_reference


class ClosedObjectOpener:
    """Remover of `additionalProperties: false` from objects to which other schemas add properties.

    One instance handles one document. `siblings` means that keywords next to a `$ref` apply.
    """

    def __init__(self, references: References, problems: ProblemCollector, *, siblings: bool) -> None:
        self._references = references
        self._problems = problems
        self._siblings = siblings
        self._opened: set[Location] = set()
        self._closed: dict[Location, list[dict[str, Any]]] = {}

    def open_closed_objects(self, node: dict[str, Any], location: Location) -> None:
        """Open the closed objects at `location` and in its `allOf`, and report each object once."""
        if node.get("additionalProperties") is not False and not node.keys() & {"allOf", "$ref"}:
            return  # most schemas are neither closed nor composed
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
        """Open the closed object `out`, translated from `location`, now or when a later object requires it."""
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
            f"`additionalProperties: false` excludes {', '.join(more)[:200]} of other parts of the schema; dropped"
        )
        hint = "write `unevaluatedProperties: false` around the composition (3.1), or list all properties here"
        self._problems.add("schema-closed-object", str(location.down("additionalProperties")), message, hint)

    def _applied(self, whole: LocatedNode, *keywords: str) -> Iterator[LocatedNode]:
        """Yield each object that applies to the same value through references or lists under `keywords`."""
        waiting = [whole]
        seen: set[Location] = set()
        while waiting:
            part = waiting.pop()
            if part.location in seen or not isinstance(part.node, dict):
                continue
            seen.add(part.location)
            reference = part.node.get("$ref")
            if isinstance(reference, str):
                with suppress(UnresolvedError):  # the error is reported when the reference is translated
                    waiting.append(self._references.resolve(reference, part.location))
                if not self._siblings:
                    continue
            yield part
            waiting += part.parts(*keywords)


def _demanded(node: dict[str, Any]) -> set[str]:
    """Return the properties that a closed object requires but does not declare."""
    required = node.get("required")
    places = node.get("properties")
    if not isinstance(required, list) or node.get("patternProperties"):
        return set()
    return {str(name) for name in required} - {str(name) for name in (places if isinstance(places, dict) else ())}


def _own(node: dict[str, Any]) -> set[tuple[str, str]]:
    found = set()
    for keyword in ("properties", "patternProperties"):
        written = node.get(keyword)
        found |= {(keyword, str(name)) for name in written} if isinstance(written, dict) else set()
    return found


_DEEP: Final = 100
"""Maximum nesting depth within one schema, counted separately for each shared schema."""
_MAX_SUBTYPES: Final = 10
"""Maximum subtypes to list in `anyOf`, because models must read each of them."""
_BUDGET: Final = 6_000_000
"""Maximum schemas to translate per document, where a shared part counts once for each reference."""

Object = dict[str, Any]


class TranslationContext(NamedTuple):
    """Location of the translated schema, its direction, and constraints from enclosing schemas."""

    location: Location
    direction: Direction
    depth: int = 0
    hidden: frozenset[str] = frozenset()
    """Properties that an enclosing `allOf` hides and that therefore cannot be required."""

    def down(self, *tokens: str | int) -> TranslationContext:
        """Return the context of a subschema."""
        return TranslationContext(self.location.down(*tokens), self.direction, self.depth + 1)


class SchemaTranslator:
    """Translator of the schemas of one document."""

    def __init__(
        self, spec: SpecVersion, references: References, visibility: HiddenProperties, problems: ProblemCollector
    ) -> None:
        self._spec = spec
        self._references = references
        self._visibility = visibility
        self._problems = problems
        self._closing = ClosedObjectOpener(references, problems, siblings=spec.siblings)
        self._left = _BUDGET
        self._inline: dict[tuple[Location, Direction], JsonSchema] = {}
        try:
            named = references.resolve(f"#{spec.schemas}", Location("", "")).node
        except UnresolvedError:
            named = {}  # the section of named schemas is optional
        self._written: Object = named if isinstance(named, dict) else {}
        self._names = SchemaNames(named, spec.schemas)
        self._named = SharedSchemaQueue(self._names, visibility)

    def translate(self, node: Any, location: Location, direction: Direction) -> JsonSchema:
        """Return the schema of a parameter, body or response. The result is cached, and must not be changed."""
        key = (location, direction)
        if key not in self._inline:
            self._inline[key] = self._schema(node, TranslationContext(location, direction))
        return self._inline[key]

    def shared(self) -> dict[str, JsonSchema]:
        """Return the referenced schemas by name. Call this method once, after all translations."""
        shared: dict[str, JsonSchema] = {}
        while self._named.waiting:
            name, target, direction = self._named.waiting.pop()
            shared[name] = self._schema(target.node, TranslationContext(target.location, direction))
        break_cycles(shared, lambda name: self._names.variant_of(name, "base"), self._report_cycle)
        return dict(sorted(shared.items()))

    def _report_cycle(self, name: str) -> None:
        location = self._named.locations.get(name, "")
        message = (
            f"the schema {name!r} is defined by itself in a cycle; the reference that closes the cycle was dropped"
        )
        hint = "write out one of the schemas instead of its reference"
        self._problems.add("schema-cycle", str(location), message, hint)

    def _schema(self, node: Any, context: TranslationContext) -> JsonSchema:
        if isinstance(node, bool):
            return node
        if isinstance(node, str) and node.lower() in {"true", "false", *TYPES}:
            intended = node.lower()
            message = f"the string {node!r} is not a schema; read as {intended}"
            self._report("schema-invalid", context.location, message)
            return {"type": intended} if intended in TYPES else intended == "true"
        if not isinstance(node, dict):
            kind = "a list" if isinstance(node, list) else "null" if node is None else f"{str(node)[:40]!r}"
            message = f"{kind} is not a schema; anything is accepted"
            self._report("schema-invalid", context.location, message)
            return {}
        if not self._within_bounds(context):
            return {}
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(node.get(keyword), str):
                return self._reference(node, keyword, context)
        result = self._object(node, context)
        return allow_null(result) if _nullable(node) else result

    def _report(self, code: str, location: Location, message: str, hint: str = "") -> None:
        self._problems.add(code, str(location), message, hint)

    def _within_bounds(self, context: TranslationContext) -> bool:
        self._left -= 1
        if self._left < 0:
            message = "the references of this document expand to too many schemas; anything is accepted from here on"
            hint = "reference named schemas instead of parts of other schemas"
            self._report("schema-budget", Location("", ""), message, hint)
            return False
        if context.depth > _DEEP:
            message = f"the schema is nested deeper than {_DEEP} levels; anything is accepted below"
            self._report("schema-too-deep", context.location, message, "give the inner schemas names")
            return False
        return True

    def _reference(self, node: Object, keyword: str, context: TranslationContext) -> JsonSchema:
        beside = {key: value for key, value in node.items() if key != keyword}
        result: Object = {}
        try:
            target = self._last(self._intended(node[keyword], context.location))
        except UnresolvedError as error:
            self._report(error.code, context.location.down(keyword), f"{error}; anything is accepted here", error.hint)
        else:
            result = {"$ref": definition_reference(self._named.name(target, context.direction))}
        if not beside:
            return result
        if not self._spec.siblings:
            self._report_siblings(beside, context.location)
            beside = {key: value for key, value in beside.items() if key in ANNOTATIONS or key == "example"}
        self._closing.open_closed_objects({keyword: node[keyword], **beside}, context.location)
        result |= self._object(beside, context)
        self._closing.apply(result, context.location)
        return allow_null(result) if _nullable(node) else result

    def _intended(self, reference: str, location: Location) -> LocatedNode:
        """Return the target of a reference, where `#` is the enclosing named schema."""
        if reference != "#" or location.part:
            return self._references.resolve(reference, location)
        tokens = location.pointer.split("/")
        named = self._spec.schemas.split("/")
        if tokens[: len(named)] == named and len(tokens) > len(named):
            return self._references.resolve("#" + "/".join(tokens[: len(named) + 1]), location)
        raise UnresolvedError("reference-dangling", "the reference '#' means the whole document, which is not a schema")

    def _last(self, target: LocatedNode) -> LocatedNode:
        """Return the last target of a chain of bare references, such as C for A → B → C."""
        seen = {target.location}
        while isinstance(target.node, dict) and len(target.node) == 1 and isinstance(target.node.get("$ref"), str):
            target = self._references.resolve(target.node["$ref"], target.location)
            if target.location in seen:
                message = "the reference points back to itself"
                raise UnresolvedError("reference-cycle", message, "replace one of the references with a schema")
            seen.add(target.location)
        return target

    def _report_siblings(self, beside: Object, location: Location) -> None:
        lost = sorted(key for key in beside if key not in _HARMLESS and not key.startswith("x-"))
        if lost:
            message = f"{', '.join(lost)[:200]} next to a $ref has no effect in this version; dropped"
            self._report("reference-siblings", location, message, "move the reference and the rest into an allOf")

    def _object(self, node: Object, context: TranslationContext) -> Object:
        if context.direction and "allOf" in node:
            hidden = context.hidden | self._visibility.hidden_in(node, context.location, context.direction)
            context = context._replace(hidden=hidden)
        if "discriminator" in node and not node.keys() & {"oneOf", "anyOf"}:
            node = self._with_subtypes(node, context.location)
        self._closing.open_closed_objects(node, context.location)
        out: Object = {}
        for key, value in node.items():
            holds = None if key in DROPPED else APPLICATORS.get(key)
            if key in SCALARS:
                self._scalar(out, key, value, context.location)
            elif holds == "one":
                self._subschema(out, key, value, context)
            elif holds == "list":
                self._list(
                    out,
                    key,
                    value,
                    context.down(key)._replace(hidden=context.hidden if key == "allOf" else frozenset()),
                )
            elif holds == "map":
                self._map(out, key, value, context)
            elif key == "type":
                # this line only reserves the position of the key
                out["type"] = None
            elif key in MEANINGS and isinstance(value, list | dict):
                out[key] = value
            elif key not in DROPPED and not key.startswith("x-"):
                message = f"{key[:80]!r} is not a keyword of JSON Schema; dropped"
                self._report("schema-unknown-keyword", context.location.down(key), message)
        convert_old_draft_keywords(out, node)

        def report(code: str, key: str, message: str) -> None:
            self._report(code, context.location.down(key), message)

        normalize_type(out, node, report, nullable=_nullable(node))
        move_enum_to_items(out, report)
        drop_unsatisfiable_bounds(out, report)
        self._required(out, node, context)
        if "discriminator" in node:
            self._tag_branches(out, node, context.location)
        self._closing.apply(out, context.location)
        return out

    def _scalar(self, out: Object, key: str, value: Any, location: Location) -> None:
        if isinstance(value, bool) and key in {"exclusiveMinimum", "exclusiveMaximum"}:
            return  # `convert_old_draft_keywords` converts the boolean values, which were valid before draft 6
        if key in {"title", "description"} and isinstance(value, dict):
            with suppress(UnresolvedError):
                value = self._references.follow(value, location.down(key)).node
        try:
            out[key] = SCALARS[key](value)
        except ValueError as error:
            elsewhere = value is False or (key == "required" and _read_elsewhere(value, location))
            if value is not None and not elsewhere:  # None means that the YAML key has no value
                code = "schema-pattern" if key == "pattern" else "schema-keyword"
                self._report(code, location.down(key), f"{key!r} was dropped: {error}")

    def _subschema(self, out: Object, key: str, value: Any, context: TranslationContext) -> None:
        if key == "items" and isinstance(value, list):  # before draft 2020-12, a list in `items` described a tuple
            self._list(out, "prefixItems", value, context.down(key))
        elif value is not None or key == "not":
            out[key] = self._schema(value, context.down(key))

    def _list(self, out: Object, key: str, value: Any, context: TranslationContext) -> None:
        if isinstance(value, list) and value:
            out[key] = [
                self._schema(one, context._replace(location=context.location.down(index)))
                for index, one in enumerate(value)
            ]
        elif value not in (None, []):
            self._report("schema-keyword", context.location, f"{key!r} was dropped: must be a list of schemas")

    def _map(self, out: Object, key: str, value: Any, context: TranslationContext) -> None:
        at = context.down(key)
        value, location = self._references.mapping(value, at.location)
        if location != at.location:
            message = f"{key!r} must not be a reference as a whole; the reference was followed"
            hint = "write out the properties, or move the schema into an allOf"
            self._report("schema-keyword", at.location, message, hint)
            at = at._replace(location=location)
        if not isinstance(value, dict):
            if value is not None:
                message = f"{key!r} was dropped: must be an object of schemas"
                self._report("schema-keyword", context.location.down(key), message)
            return
        schemas: Object = {}
        out[key] = schemas
        for name, one in value.items():
            inner = at._replace(location=location.down(name))
            if (
                context.direction
                and key == "properties"
                and self._visibility.hides(one, inner.location, context.direction)
            ):
                continue
            schemas[name] = self._schema(one, inner)

    def _required(self, out: Object, node: Object, context: TranslationContext) -> None:
        self._required_elsewhere(out, node, context.location)
        required = out.get("required")
        if not required or not context.direction:
            return
        written = node.get("properties")
        own = written.keys() - out.get("properties", {}).keys() if isinstance(written, dict) else set()
        out["required"] = [name for name in required if name not in own and name not in context.hidden]
        if not out["required"]:
            del out["required"]

    def _required_elsewhere(self, out: Object, node: Object, location: Location) -> None:
        """Convert `required: name` of an object, and `required: true` of its properties, to a list of names."""
        properties = node.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        names = list(out.get("required", ()))
        if isinstance(node.get("required"), str) and node["required"] in properties:
            names.append(node["required"])
            message = "`required` is a string; read as a list of one name"
            self._report("schema-required", location.down("required"), message)
        for name, one in properties.items():
            if isinstance(one, dict) and one.get("required") in (True, "true"):
                names.append(name)
                message = f"the property {name[:80]!r} has `required: true`; read as required by the object"
                self._report("schema-required", location.down("properties", name), message, "write `required: [name]`")
        if names:
            out["required"] = list(dict.fromkeys(names))

    # JSON Schema has no `discriminator` (OpenAPI 3.1 §4.8.25), so that each branch must declare its own value

    def _with_subtypes(self, node: Object, location: Location) -> Object:
        """Return a parent with `anyOf`: its subtypes, and the parent itself under its own discriminator value.

        Subtypes are the targets of `mapping`, and the named schemas with the parent in their `allOf`.
        """
        discriminator = node["discriminator"]
        described = discriminator if isinstance(discriminator, dict) else {"propertyName": discriminator}
        name, values = described.get("propertyName"), self._mapped(described.get("mapping"), location)
        subtypes = [one for one in dict.fromkeys([*values, *self._subtypes.get(location, ())]) if one != location]
        if not isinstance(name, str) or any(one.part != location.part for one in subtypes):
            return node
        branches: list[Object] = [{"$ref": f"#{one.pointer}"} for one in subtypes]
        if own := values.get(location) or _own_name(f"#{location.pointer}", f"#{self._spec.schemas}/"):
            branches.append({"properties": {name: {"enum": own}}})
        return {**node, "anyOf": branches} if 0 < len(subtypes) <= _MAX_SUBTYPES else node

    @cached_property
    def _subtypes(self) -> dict[Location, list[Location]]:
        """The named schemas with a parent in their `allOf`, by the location of the parent."""
        subtypes: dict[Location, list[Location]] = {}
        for name, node in self._written.items():
            own = LocatedNode(node, Location("", self._spec.schemas).down(name))
            for part in composed(self._references, own, "allOf"):
                subtypes.setdefault(part.location, []).append(own.location)
        return subtypes

    def _tag_branches(self, out: Object, node: Object, location: Location) -> None:
        """Add the discriminator value to the branches of `out` that do not declare the value.

        `node` is the original schema at `location`, and `out` is its translation. The discriminator values are in
        `mapping`. The value of an unmapped schema is the name of the schema. Only branches that are references are
        changed.
        """
        discriminator = node["discriminator"]
        name = discriminator.get("propertyName") if isinstance(discriminator, dict) else None
        keyword = next((key for key in ("oneOf", "anyOf") if isinstance(out.get(key), list)), "")
        if not isinstance(name, str) or not keyword:
            return
        values = self._mapped(discriminator.get("mapping"), location)
        for index, branch in enumerate(node[keyword]):
            reference = branch.get("$ref") if isinstance(branch, dict) else None
            if not isinstance(reference, str) or "$ref" not in out[keyword][index]:
                continue
            target = self._followed(reference, location)
            if target is None:
                continue
            wanted = values.get(target.location) or _own_name(reference, f"#{self._spec.schemas}/")
            stated = self._stated(target, name)
            if not wanted or (stated is not None and not set(wanted) < stated):
                continue
            tag = {"properties": {name: {"enum": wanted}}, "required": [name]}
            out[keyword][index] = {"allOf": [out[keyword][index], tag]}

    def _mapped(self, mapping: Any, location: Location) -> dict[Location, list[str]]:
        """Return the discriminator values by schema location, from references or names in `mapping`."""
        values: dict[Location, list[str]] = {}
        for value, intended in mapping.items() if isinstance(mapping, dict) else ():
            if isinstance(intended, str):
                named = f"#{Location('', self._spec.schemas).down(intended).pointer}"
                target = self._followed(named, location) if "#" not in intended else None
                target = target or self._followed(intended, location)
                if target is not None:
                    values.setdefault(target.location, []).append(value)
        return values

    def _followed(self, reference: str, location: Location) -> LocatedNode | None:
        try:
            return self._references.follow(*self._references.resolve(reference, location))
        except UnresolvedError:
            return None

    def _stated(self, target: LocatedNode, name: str) -> set[str] | None:
        """Return the values that a branch of a schema allows for the property, or None for any value."""
        found: set[str] | None = None
        for at, (node, location) in enumerate(composed(self._references, target, "allOf")):
            properties = node.get("properties")
            schema = properties.get(name) if isinstance(properties, dict) else None
            with suppress(UnresolvedError):
                schema = self._references.follow(schema, location.down("properties", name)).node
                schema = schema if isinstance(schema, dict) else {}
                listed = [schema["const"]] if "const" in schema else schema.get("enum")
                if isinstance(listed, list):
                    values = {value for value in listed if isinstance(value, str)}
                    if at == 0:
                        return values
                    found = values if found is None or len(values) < len(found) else found
        return found


_HARMLESS: Final = ANNOTATIONS | DROPPED | {"summary"}


def _read_elsewhere(required: Any, location: Location) -> bool:
    """Return True if `_required_elsewhere` converts this `required`."""
    return isinstance(required, str) or (required is True and location.pointer.split("/")[-2:-1] == ["properties"])


def _nullable(node: Object) -> bool:
    """Return True if `nullable` or the `x-nullable` of Swagger 2.0 is true, or if a type next to a `$ref` adds null.

    In JSON Schema, such a type only excludes values of the reference, and authors do not write null to exclude it.
    """
    adds_null = "$ref" in node and isinstance(node.get("type"), list) and "null" in node["type"]
    return adds_null or node.get("nullable") is True or node.get("x-nullable") is True


def _own_name(reference: str, prefix: str) -> list[str]:
    """Return [name] for a reference to a named schema, and [] for other references."""
    name = reference.removeprefix(prefix)
    return [name] if reference.startswith(prefix) and not set("/~%") & set(name) else []
