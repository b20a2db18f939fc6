"""Media types: which of several is used, and the schema of one."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.ir import JsonSchema
from mcpfactory_codegen.openapi.lenient import SHORT_MEDIA
from mcpfactory_codegen.openapi.reading import Reading
from mcpfactory_codegen.openapi.references import Place, Target, UnresolvedError
from mcpfactory_codegen.openapi.translate import Direction

__all__ = ["Media", "choose", "essence", "file_like", "is_json", "properties_of", "rank", "read_media"]

_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+*-]+/[A-Za-z0-9!#$&^_.+*-]+(\s*;[\x20-\x7e]*)?\Z")
_LOOK: Final = 8  # levels of references and combinations to look through for properties


class Media(NamedTuple):
    """The chosen media type, its object and where that stands."""

    content_type: str
    node: dict[str, Any]
    place: Place


def essence(content_type: str) -> str:
    """`application/json` of `Application/JSON; charset=utf-8`."""
    return content_type.partition(";")[0].strip().lower()


def is_json(content_type: str) -> bool:
    """Is it JSON, also by its suffix?"""
    name = essence(content_type)
    return name in {"application/json", "text/json"} or name.endswith("+json")


def rank(content_type: str) -> int:
    """JSON first, then what says how its fields travel, then text; the rest comes as it stands."""
    name = essence(content_type)
    if name == "application/json":
        return 0
    if is_json(content_type):
        return 1
    order = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
    if name in order:
        return 2 + order.index(name)
    return 5 if name.startswith("text/") else 6 if "*" in name else 7


def choose(reading: Reading, content: Any, place: Place) -> Media | None:
    """Return the media type that is used out of a `content` map, or None when there is none."""
    content, place = reading.references.mapping(content, place)
    if not isinstance(content, dict):
        if content is not None:
            reading.report("media-invalid", place, "`content` has to be an object of media types; ignored")
        return None
    usable: dict[str, str] = {}  # media type → the key that it stands under
    for key in content:
        name = key.partition(",")[0].strip()  # a list, as an Accept header has it: its first entry
        name = SHORT_MEDIA.get(name.lower(), name)
        if _MEDIA_TYPE.match(name):
            usable.setdefault(name, key)
        if name != key or name not in usable:
            if key.startswith("x-"):
                continue
            meant = f"read as {name}" if name in usable else "ignored"
            message = f"{key[:80]!r} is no media type; {meant}"
            reading.report("media-invalid", place.down(key), message, "write, say, application/json")
    if not usable:
        return None
    name = min(usable, key=rank)  # the first of equals
    place = place.down(usable[name])
    target = reading.follow(content[usable[name]], place)
    if target is None or not isinstance(target.node, dict):
        if target is not None and target.node is not None:
            reading.report("media-invalid", place, "a media type has to be an object; anything is accepted")
        return Media(name, {}, place)
    return Media(name, target.node, target.place)


def read_media(reading: Reading, media: Media, direction: Direction) -> JsonSchema | None:
    """Return the schema of a media type, None when it has none. For streams of items (3.2) it is the list of them."""
    for keyword in ("schema", "itemSchema"):
        if keyword in media.node:
            schema = reading.schemas.translate(media.node[keyword], media.place.down(keyword), direction)
            return schema if keyword == "schema" else {"type": "array", "items": schema}
    return None


def properties_of(reading: Reading, schema: Any, place: Place) -> dict[str, Target]:
    """Return the properties of an object schema as written, also by way of references and combinations. First wins."""
    found: dict[str, Target] = {}
    seen: set[Place] = set()

    def collect(node: Any, at: Place, look: int) -> None:
        try:
            node, at = reading.references.follow(node, at)
        except UnresolvedError:
            return  # reported where the schema is translated
        if not isinstance(node, dict) or at in seen or look == 0:
            return
        seen.add(at)
        properties, inside = reading.references.mapping(node.get("properties"), at.down("properties"))
        if isinstance(properties, dict):
            for name, value in properties.items():
                found.setdefault(name, Target(value, inside.down(name)))
        for keyword in ("allOf", "anyOf", "oneOf"):
            parts = node.get(keyword)
            for index, part in enumerate(parts if isinstance(parts, list) else []):
                collect(part, at.down(keyword, index), look - 1)

    collect(schema, place, _LOOK)
    return found


def file_like(reading: Reading, schema: Any, place: Place, look: int = _LOOK) -> bool:
    """Do values of this schema (or the items, for a list) travel as raw bytes? OpenAPI 3.0 §4.7.14.2, 3.1 §4.8.14.2."""
    try:
        node, place = reading.references.follow(schema, place)
    except UnresolvedError:
        return False
    if not isinstance(node, dict) or look == 0:
        return False
    if node.get("format") == "binary" or node.get("type") == "file":
        return True
    inner = node.get("contentMediaType")
    if (
        isinstance(inner, str)
        and "contentEncoding" not in node
        and not is_json(inner)
        and not inner.startswith("text/")
    ):
        return True
    if "items" in node and file_like(reading, node["items"], place.down("items"), look - 1):
        return True
    for keyword in ("allOf", "anyOf", "oneOf"):
        parts = node.get(keyword)
        for index, part in enumerate(parts if isinstance(parts, list) else []):
            if file_like(reading, part, place.down(keyword, index), look - 1):
                return True
    return False
