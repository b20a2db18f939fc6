"""What people write instead of what the specification says, where there is no doubt about what they mean.

Each function gives the node as it should have been and reports what it assumed. Nothing here guesses between two meanings.
"""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_codegen.openapi.reading import Reading
from mcpfactory_codegen.openapi.references import Place

__all__ = ["SHORT_MEDIA", "flags", "parameter", "scheme", "style", "template"]

SHORT_MEDIA: Final = {
    "json": "application/json",
    "xml": "application/xml",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain",
    "html": "text/html",
    "binary": "application/octet-stream",
}

_PLACES: Final = {
    "headers": "header", "cookies": "cookie", "querystring": "querystring", "params": "query", "form": "formData",
    "formdata": "formData",
}  # fmt: skip
_STYLES: Final = {
    # words of Swagger 2.0's collectionFormat, and path styles in a query: style, explode
    "csv": ("form", False), "simple": ("form", False), "comma": ("form", False), "multi": ("form", True),
    "ssv": ("spaceDelimited", False), "tsv": ("tabDelimited", False), "pipes": ("pipeDelimited", False),
    "deepobject": ("deepObject", True), "form": ("form", None), "spacedelimited": ("spaceDelimited", False),
    "pipedelimited": ("pipeDelimited", False),
}  # fmt: skip
_COLON: Final = re.compile(r"(?<=/):(\w+)|<(?:\w+:)?(\w+)>|\{(\w[\w.-]*)[:?][^{}]*\}")
_SCHEMES: Final = {"apikey": "apiKey", "oauth": "oauth2", "oauth2.0": "oauth2", "openid": "openIdConnect"}


def parameter(reading: Reading, node: dict[str, Any], place: Place, path: str, key: str = "") -> dict[str, Any]:
    """Return a parameter object with a name and a place as texts. `key`: its name in a map that should have been a list."""
    done = dict(node)
    name = done.get("name", key)
    if isinstance(name, (int, float)):
        reading.report("parameter-shape", place.down("name"), "the name is no text; read as it is written")
        name = str(name).lower() if isinstance(name, bool) else str(name)
    if not isinstance(name, str) or not name:
        return done
    done["name"] = name
    there = f"{{{name}}}" in path
    where = done.get("in")
    if where is None and not there and not done.keys() & {"schema", "type", "content"}:
        return done  # no parameter at all, perhaps
    if not isinstance(where, str) or where.lower() in {"", "url", "uri", "path", "params"}:
        done["in"] = "path" if there or str(where).lower() == "path" else "query"
    else:
        done["in"] = _PLACES.get(where.lower(), where.lower())
        if done["in"] == "formdata":
            done["in"] = "formData"
    if done["in"] != where:
        said = "says no place" if where is None else f"is in {str(where)[:40]!r}"
        reading.report("parameter-place", place, f"the parameter {name[:80]!r} {said}; read as {done['in']}")
    return flags(reading, done, place, ("required", "deprecated", "explode", "allowReserved", "allowEmptyValue"))


def flags(reading: Reading, node: dict[str, Any], place: Place, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the node with texts such as "true" and `yes` as what they say."""
    said = {"true": True, "yes": True, "false": False, "no": False}
    found = {
        key: said[node[key].lower()] for key in keys if isinstance(node.get(key), str) and node[key].lower() in said
    }
    for key, value in found.items():
        reading.report(
            "parameter-shape", place.down(key), f"{key} is the text {node[key]!r}; read as {str(value).lower()}"
        )
    return {**node, **found}


def style(reading: Reading, node: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return a query parameter whose style has a name from elsewhere."""
    written = node.get("style")
    meant = _STYLES.get(written.lower()) if isinstance(written, str) else None
    if meant is None or node.get("in") != "query" or meant[0] == written:
        return node
    message = f"the style {str(written)[:40]!r} does not exist in query; read as {meant[0]}"
    reading.report("parameter-style", place.down("style"), message, f"write {meant[0]}, and explode")
    explode = {} if meant[1] is None else {"explode": meant[1]}
    return {**node, "style": meant[0], **explode}


def template(path: str, names: frozenset[str]) -> str:
    """Return the path with `:id`, `<int:id>` and `{id:[0-9]+}` as `{id}`, where that is a declared path parameter."""

    def plain(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        return "{" + name + "}" if name in names and f"{{{name}}}" not in path else match[0]

    return _COLON.sub(plain, path)


def scheme(reading: Reading, node: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return a security scheme in the specification's words: `type: basic`, `bearer` and `apikey` are read."""
    kind = node.get("type")
    if not isinstance(kind, str):
        return node
    if kind.lower() in {"basic", "bearer"}:
        meant = {**node, "type": "http", "scheme": kind.lower()}
    else:
        meant = {**node, "type": _SCHEMES.get(kind.lower(), kind)}
        if meant["type"] == "apiKey" and isinstance(node.get("in"), str):
            meant["in"] = node["in"].lower()
    if meant != node:
        changed = ", ".join(f"{key}: {meant[key]}" for key in meant if meant[key] != node.get(key))
        reading.report("security-shape", place, f"the scheme is written in other words; read as {changed[:120]}")
    return meant
