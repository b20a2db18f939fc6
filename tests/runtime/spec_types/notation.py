"""Compact notation for the types of a published schema: members, required members, and their kinds.

A kind is written as

  "string", "integer|null"          JSON types
  "string uri", "number 0..1"       with a format, with bounds
  "=user|assistant", -32700         one of these strings; this number
  "Role"                            another type of the table
  ["Role"], ["string", "..100"]     an array of a kind; at most 100 items
  {"text": …, "title?": …, "*": …}  an object: members with ? are optional, * is the kind of other members
  {"|": […]}, {"&": […]}            any of several kinds; all of them
  "any"                             any value

Descriptions and titles are omitted, and so is the permission of further members, which every object has.
"""

from __future__ import annotations

from typing import Any

Kind = Any
KEY = "$defs"
_JSON = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_PROSE = frozenset({"description", "title"})
_SEVERAL = {"anyOf": "|", "allOf": "&"}


def bare(schema: Any) -> Any:
    """Return a schema without descriptions, in the form that `expand` returns."""
    found = {key: value for key, value in schema.items() if key not in _PROSE}
    for key in {"items", "additionalProperties"} & found.keys():
        found[key] = bare({} if found[key] is True else found[key])
    for key in _SEVERAL.keys() & found.keys():
        found[key] = [bare(one) for one in found[key]]
    if not found.get("additionalProperties", True):
        del found["additionalProperties"]
    if found.get("type") == "object":
        found["properties"] = {name: bare(one) for name, one in found.get("properties", {}).items()}
        found["required"] = sorted(found.get("required", []))
    if "$ref" in found:
        found["$ref"] = f"#/{KEY}/{found['$ref'].rpartition('/')[2]}"
    return found


def shorten(schema: dict[str, Any], place: str) -> Kind:
    """Return the notation of one schema.

    Args:
        schema: the published schema.
        place: location of the schema, for errors.

    Raises:
        ValueError: the schema has content that the notation cannot express.
    """
    kind = _shorten(bare(schema), place)
    if expand(kind) != bare(schema):
        raise ValueError(f"{place}: the notation cannot say {bare(schema)}\nhint: give {__name__} a form for it")
    return kind


def _shorten(schema: dict[str, Any], place: str) -> Kind:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for key, sign in _SEVERAL.items():
        if key in schema:
            return {sign: [shorten(one, f"{place}/{key}") for one in schema[key]]}
    types = schema.get("type", "any")
    if types == "object":
        required = set(schema["required"])
        members = {
            name if name in required else f"{name}?": shorten(one, f"{place}/{name}")
            for name, one in schema["properties"].items()
        }
        rest = schema.get("additionalProperties")
        return members | ({} if rest is None else {"*": shorten(rest, f"{place}/*")})
    if types == "array" and "items" in schema:
        most = [f"..{schema['maxItems']}"] if "maxItems" in schema else []
        return [shorten(schema["items"], f"{place}/items"), *most]
    if types == "integer" and "const" in schema:
        return schema["const"]
    if texts := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return f"={'|'.join(texts)}"
    details = [schema["format"]] if "format" in schema else []
    if schema.keys() & {"minimum", "maximum"}:
        details.append(f"{schema.get('minimum', '')}..{schema.get('maximum', '')}")
    return " ".join(["|".join(types) if isinstance(types, list) else types, *details])


def expand(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema of a kind."""
    if isinstance(kind, int):
        return {"type": "integer", "const": kind}
    if isinstance(kind, list):
        most = {"maxItems": int(kind[1].removeprefix(".."))} if len(kind) > 1 else {}
        return {"type": "array", "items": expand(kind[0]), **most}
    if isinstance(kind, str):
        return _simple(kind)
    for key, sign in _SEVERAL.items():
        if sign in kind:
            return {key: [expand(one) for one in kind[sign]]}
    named = {name: one for name, one in kind.items() if name != "*"}
    return {
        "type": "object",
        "properties": {name.removesuffix("?"): expand(one) for name, one in named.items()},
        "required": sorted(name for name in named if not name.endswith("?")),
        **({"additionalProperties": expand(kind["*"])} if "*" in kind else {}),
    }


def _simple(kind: str) -> dict[str, Any]:
    if kind == "any":
        return {}
    if kind.startswith("="):
        texts = kind.removeprefix("=").split("|")
        return {"type": "string", **({"const": texts[0]} if len(texts) == 1 else {"enum": texts})}
    name, *details = kind.split(" ")
    types = name.split("|")
    if not _JSON.issuperset(types):
        return {"$ref": f"#/{KEY}/{kind}"}
    schema: dict[str, Any] = {"type": types if len(types) > 1 else name}
    for detail in details:
        if ".." in detail:
            ends = zip(("minimum", "maximum"), detail.split(".."), strict=True)
            schema |= {key: int(value) for key, value in ends if value}
        else:
            schema["format"] = detail
    return schema
