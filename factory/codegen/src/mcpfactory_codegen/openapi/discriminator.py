"""`discriminator` (OpenAPI 3.1 section 4.8.25) in the words of JSON Schema: each branch of a choice says which value it has.

JSON Schema has no discriminator, and without it branches that differ in optional properties only all match at once.
"""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_codegen.openapi.dialect import Dialect
from mcpfactory_codegen.openapi.references import Place, References, Target, UnresolvedError

__all__ = ["tag_branches"]

_LOOK: Final = 8  # references and allOf levels to look through for the property
Object = dict[str, Any]


def tag_branches(out: Object, node: Object, place: Place, references: References, dialect: Dialect) -> None:
    """Add the value of the discriminating property to the branches of `out` that do not state it themselves.

    `node` is the schema as written at `place`, `out` its translation. The values are those of `mapping`; a named schema
    that it leaves out stands for its own name. Branches that are no references stay as they are.
    """
    discriminator = node["discriminator"]
    name = discriminator.get("propertyName") if isinstance(discriminator, dict) else None
    keyword = next((key for key in ("oneOf", "anyOf") if isinstance(out.get(key), list)), "")
    if not isinstance(name, str) or not keyword:
        return
    values = _mapping(discriminator.get("mapping"), place, references, dialect)
    for index, branch in enumerate(node[keyword]):
        reference = branch.get("$ref") if isinstance(branch, dict) else None
        if not isinstance(reference, str) or "$ref" not in out[keyword][index]:
            continue
        target = _followed(reference, place, references)
        if target is None:
            continue
        wanted = values.get(target.place) or _own_name(reference, dialect)
        stated = _stated(target, name, references, _LOOK)
        if not wanted or (stated is not None and not set(wanted) < stated):
            continue
        tag = {"properties": {name: {"enum": wanted}}, "required": [name]}
        out[keyword][index] = {"allOf": [out[keyword][index], tag]}


def _mapping(mapping: Any, place: Place, references: References, dialect: Dialect) -> dict[Place, list[str]]:
    """Schema → the values that stand for it. A schema is meant by a reference or by its name."""
    values: dict[Place, list[str]] = {}
    for value, meant in mapping.items() if isinstance(mapping, dict) else ():
        if not isinstance(meant, str):
            continue
        named = f"#{Place('', dialect.schemas).down(meant).pointer}"
        target = (_followed(named, place, references) if "#" not in meant else None) or _followed(
            meant, place, references
        )
        if target is not None:
            values.setdefault(target.place, []).append(value)
    return values


def _own_name(reference: str, dialect: Dialect) -> list[str]:
    prefix = f"#{dialect.schemas}/"
    name = reference.removeprefix(prefix)
    return [name] if reference.startswith(prefix) and "/" not in name and "~" not in name and "%" not in name else []


def _followed(reference: str, place: Place, references: References) -> Target | None:
    try:
        return references.follow(*references.resolve(reference, place))
    except UnresolvedError:
        return None


def _stated(target: Target, name: str, references: References, look: int) -> set[str] | None:
    """Return the values that a branch allows for the property by itself; None when it allows any."""
    try:
        node, place = references.follow(*target)
    except UnresolvedError:
        return None
    if not isinstance(node, dict) or look == 0:
        return None
    properties = node.get("properties")
    schema = properties.get(name) if isinstance(properties, dict) else None
    if isinstance(schema, dict):
        try:
            schema = references.follow(schema, place.down("properties", name)).node
        except UnresolvedError:
            schema = None
    if isinstance(schema, dict):
        listed = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(listed, list):
            return {value for value in listed if isinstance(value, str)}
    found: set[str] | None = None
    parts = node.get("allOf")
    for index, part in enumerate(parts if isinstance(parts, list) else []):
        one = _stated(Target(part, place.down("allOf", index)), name, references, look - 1)
        if one is not None and (found is None or len(one) < len(found)):
            found = one
    return found
