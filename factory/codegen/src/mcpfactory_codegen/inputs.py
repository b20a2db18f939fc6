"""Inputs of an operation: its parameters, and its body split into properties where useful.

A JSON or form body with known properties becomes one input per property, because models fill flat arguments more
reliably. Any other body is one input. All code that names, describes or writes arguments uses this list of inputs.

To match the API's documentation, an argument keeps the API's spelling if Python permits. For example, `bookId` stays
unchanged, but `X-Request-Id` becomes `x_request_id`. If inputs in several places have the same name, the first place in
`PLACES` keeps the name. Every other place becomes a prefix, as in `limit` and `body_limit`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from mcpfactory_codegen.ir import Api, ApiBody, ApiOperation, ApiParameter, Encoding, JsonSchema
from mcpfactory_codegen.text import digest, identifier, is_identifier, join_and_shorten, words
from mcpfactory_runtime.schemas.merge import merge_properties
from mcpfactory_runtime.schemas.walk import properties_of, required_of, resolve_definition, subschemas_of, types_of
from mcpfactory_runtime.upstream.encoding import is_json, media_type

Place = Literal["path", "query", "querystring", "header", "cookie", "body", "form"]

PLACES: Final[tuple[Place, ...]] = ("path", "query", "querystring", "header", "cookie", "body", "form")
"""Places of inputs, in order of priority for a name that several inputs have."""

_FORMS: Final = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})

_DEPTH: Final = 12  # maximum levels of nested `allOf`; a body with more levels is one input
_PARTS: Final = 500  # maximum `allOf` parts on all levels; a body with more parts is one input
_ANNOTATIONS: Final = frozenset(
    {"title", "description", "default", "deprecated", "example", "examples", "$comment", "externalDocs", "xml"}
)
_BRANCHING: Final = ("oneOf", "not", "if", "patternProperties", "dependentSchemas", "propertyNames", "$dynamicRef")


@dataclass(frozen=True, slots=True)
class Input:
    """One value that a caller can pass. A whole body has the name ""."""

    place: Place
    name: str
    schema: JsonSchema
    required: bool
    description: str = ""
    deprecated: bool = False
    parameter: ApiParameter | None = None
    encoding: Encoding | None = None

    @property
    def slot(self) -> tuple[str, str]:
        """Return the place and the name in the request, which identify the input."""
        return self.place, self.name


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of an operation.

    `choices` has alternative sets of body properties, one of which must be given. `needed_with_body` has the required
    properties of an optional body.
    """

    items: tuple[Input, ...]
    choices: tuple[tuple[str, ...], ...] = ()
    needed_with_body: tuple[str, ...] = ()


def inputs(operation: ApiOperation, api: Api) -> Inputs:
    """Return the inputs of an operation in the order of the document."""
    items = [
        Input(p.place, p.name, p.schema, p.required or p.place == "path", p.description, p.deprecated, p)
        for p in operation.parameters
    ]
    choices: tuple[tuple[str, ...], ...] = ()
    needed: tuple[str, ...] = ()
    if operation.body is not None:
        of_body, choices, needed = _of_body(operation.body, api.schemas)
        items += of_body
    seen: set[tuple[str, str]] = set()
    kept = []
    for item in items:
        slot = (item.place, item.name.lower()) if item.place == "header" else item.slot
        if slot not in seen:
            seen.add(slot)
            kept.append(item)
    return Inputs(tuple(kept), choices, needed)


def _of_body(
    body: ApiBody, schemas: dict[str, JsonSchema]
) -> tuple[list[Input], tuple[tuple[str, ...], ...], tuple[str, ...]]:
    media = media_type(body.content_type)
    form = media in _FORMS
    place: Place = "form" if form else "body"
    splits = form or not media or is_json(media) or body.xml is not None
    flat = _flatten(body.schema, schemas, 0, [_PARTS]) if splits else None
    if body.graphql and flat is not None and not flat.properties:
        return [], (), ()
    # the encodings of a form belong to single arguments
    closed = flat is not None and (flat.others in (None, False) or bool(body.encoding))
    # a property named "" would be confused with the whole body
    if flat is None or not flat.properties or not closed or "" in flat.properties:
        kinds = ", ".join((body.content_type, *body.alternatives))
        encoding = Encoding(content_type=kinds, file=True) if _is_file(body, media) else None
        return [Input(place, "", body.schema, body.required, body.description, encoding=encoding)], (), ()
    required = set(flat.required)
    if flat.others is not False:  # a schema may require a property without describing the property
        flat.properties.update({name: {} for name in flat.required if name and name not in flat.properties})
    items = [
        Input(place, name, schema, body.required and name in required, encoding=body.encoding.get(name))
        for name, schema in flat.properties.items()
    ]
    if not form:
        items = [replace(item, encoding=None) for item in items]
    needed = () if body.required else tuple(name for name in flat.properties if name in required)
    return items, flat.choices, needed


def _is_file(body: ApiBody, media: str) -> bool:
    """Return True if a whole body is raw bytes: not a form, not text, and with a schema without structure."""
    if media in _FORMS or not media or is_json(media) or media.startswith("text/"):
        return False
    structured = isinstance(body.schema, dict) and not {"properties", "$ref", "items"}.isdisjoint(body.schema)
    return not structured and not media.endswith(("xml", "yaml", "ndjson"))


@dataclass(slots=True)
class _FlatSchema:
    """An object schema, merged with the schemas in its `allOf`.

    `others` is the schema of all unlisted properties, or None.
    """

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    choices: tuple[tuple[str, ...], ...] = ()
    others: Any = None


def _flatten(schema: JsonSchema, schemas: dict[str, JsonSchema], depth: int, left: list[int]) -> _FlatSchema | None:
    """Return the flat form of an object schema, or None if the schema has no flat form."""
    left[0] -= 1
    schema = resolve_definition(schema, schemas)
    if depth > _DEPTH or left[0] < 0 or not isinstance(schema, dict) or any(key in schema for key in _BRANCHING):
        return None
    kinds = types_of(schema)
    if "object" not in kinds and (kinds or not {"properties", "allOf"} & schema.keys()):
        return None
    flat = _FlatSchema()
    for part in subschemas_of(schema, "allOf"):
        merged = resolve_definition(part, schemas)
        if isinstance(merged, dict) and set(merged) <= _ANNOTATIONS | {"required"}:
            flat.required += required_of(merged)
            continue
        inner = _flatten(part, schemas, depth + 1, left)
        if inner is None:
            return None
        flat.properties = merge_properties(flat.properties, inner.properties)
        flat.required += inner.required
        flat.choices = flat.choices or inner.choices
        flat.others = inner.others or flat.others
    choices = _choices(subschemas_of(schema, "anyOf"))
    if choices is None:
        return None
    flat.choices = choices or flat.choices
    flat.properties.update(properties_of(schema))
    flat.required += required_of(schema)
    flat.others = schema.get("additionalProperties", flat.others)
    return flat


def _choices(branches: list[Any]) -> tuple[tuple[str, ...], ...] | None:
    """Return the required names of each `anyOf` branch, or None if a branch has other keywords."""
    if not all(isinstance(branch, dict) and "required" in branch for branch in branches):
        return None
    if not all(set(branch) <= _ANNOTATIONS | {"required"} for branch in branches):
        return None
    return tuple(tuple(branch["required"]) for branch in branches)


_ARGUMENT_LIMIT: Final = 64
_RESERVED_ARGUMENTS: Final = frozenset({"api", "self", "cls", "_", "match", "case"})


def is_valid_argument_name(name: str) -> bool:
    """Return True if an argument of a generated function can have this name."""
    return (
        is_identifier(name)
        and not name.startswith("__")
        and name not in _RESERVED_ARGUMENTS
        and len(name) <= _ARGUMENT_LIMIT
    )


def name_arguments(items: Iterable[Input], taken: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """Return the argument name of each input, by slot, without names in `taken`."""
    waiting = sorted(items, key=lambda item: (PLACES.index(item.place), item.name))
    order = [item.slot for item in waiting]
    names: dict[tuple[str, str], str] = {}
    used = set(taken)
    for phase in range(3):
        for place in PLACES:
            claims: dict[str, list[Input]] = defaultdict(list)
            for item in waiting:
                if item.place == place and item.slot not in names:
                    claims[_argument_candidate(item, phase)].append(item)
            for name, claimants in sorted(claims.items()):
                exact = [item for item in claimants if item.name == name] or claimants
                if name not in used and len(exact) == 1:
                    names[exact[0].slot] = name
                    used.add(name)
    for slot in order:
        if slot not in names:  # all candidate names collided with candidate names of other inputs
            names[slot] = f"{slot[0]}_{digest(slot[1], 16)}"
    return names


def _argument_candidate(item: Input, phase: int) -> str:
    plain = _plain_argument(item)
    if phase == 0:
        return plain
    if phase == 1:
        return _shortened(f"{item.place}_{plain.rstrip('_')}", item)
    return _shortened(f"{item.place}_{plain.rstrip('_')}", item, 7) + "_" + digest(item.name, 6)


def _plain_argument(item: Input) -> str:
    if not item.name:
        return item.place
    if is_identifier(item.name) and not item.name.startswith("__"):
        name = item.name + "_" if item.name in _RESERVED_ARGUMENTS else item.name
    else:
        name = identifier(item.name, prefix=item.place, reserved=_RESERVED_ARGUMENTS)
    return _shortened(name, item)


def _shortened(name: str, item: Input, room: int = 0) -> str:
    if len(name) <= _ARGUMENT_LIMIT - room:
        return name
    return join_and_shorten(words(name), _ARGUMENT_LIMIT - room, item.name)
