"""What a translated schema still needs as a whole: types, null, and the keywords of older drafts. Pure functions on one object."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from mcpfactory_codegen.openapi.keywords import ANNOTATIONS, INPLACE, TYPE_FORMATS, TYPE_MENDS, TYPES

__all__ = ["allow_null", "older_drafts", "settle_type"]

Object = dict[str, Any]
Report = Callable[[str, str, str], None]
"""code, keyword, message"""

_BOUNDS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def older_drafts(out: Object, node: Object) -> None:
    """Keywords of drafts 4 to 2019-09 that have another form now; `node` is the schema as written."""
    for exclusive, bound in _BOUNDS:
        if node.get(exclusive) is True and bound in out:
            out[exclusive] = out.pop(bound)
    dependencies = node.get("dependencies")
    if isinstance(dependencies, dict):  # only the lists: dependent schemas were never part of OpenAPI
        lists = {
            name: needs
            for name, needs in dependencies.items()
            if isinstance(needs, list) and all(isinstance(need, str) for need in needs)
        }
        if lists:
            out.setdefault("dependentRequired", lists)
    if "example" in node and "examples" not in out:
        out["examples"] = [node["example"]]
    if node.get("additionalItems") is False and "prefixItems" in out:
        out["items"] = False


def allow_null(out: Object) -> Object:
    """Return the same schema, which also accepts null: `nullable` of OpenAPI 3.0 (section 4.7.24)."""
    applied = INPLACE & out.keys()
    types = out.get("type")
    if not applied:
        if types is not None:
            listed = types if isinstance(types, list) else [types]
            out["type"] = listed if "null" in listed else [*listed, "null"]
        if isinstance(out.get("enum"), list) and None not in out["enum"]:
            out["enum"] = [*out["enum"], None]
        if "const" in out and out["const"] is not None:
            out["enum"] = [out.pop("const"), None]
        return out
    around = {key: value for key, value in out.items() if key in ANNOTATIONS}
    inner = {key: value for key, value in out.items() if key not in ANNOTATIONS}
    null = {"type": "null"}
    if inner.keys() == {"anyOf"}:
        return {**around, "anyOf": inner["anyOf"] if null in inner["anyOf"] else [*inner["anyOf"], null]}
    if inner.keys() == {"allOf"} and len(inner["allOf"]) == 1:
        inner = inner["allOf"][0]
    return {**around, "anyOf": [inner, null]}


def settle_type(out: Object, node: Object, report: Report, *, nullable: bool) -> None:
    """Judge `type`, and bring `enum` into line with it. `nullable`: null will be added to the type anyway."""
    if "type" in out:
        if isinstance(node["type"], str) and "|" in node["type"]:
            report(
                "schema-type",
                "type",
                f"{node['type'][:80]!r} is no type of JSON Schema; read as a list where it is one",
            )
        types = _types(out, node["type"], report)
        if types:
            out["type"] = types[0] if len(types) == 1 and not isinstance(node["type"], list) else types
        else:
            del out["type"]
    if "enum" in out:
        _settle_enum(out, report, nullable)
    if "default" in out and isinstance(out.get("type"), str):
        _settle_default(out, report)


def _types(out: Object, written: Any, report: Report) -> list[str]:
    names: list[str] = []
    for name in written if isinstance(written, list) else _split(written):
        if isinstance(name, str) and name in TYPES:
            names.append(name)
            continue
        mended = TYPE_MENDS.get(name.lower()) if isinstance(name, str) else None
        if isinstance(name, str) and name.endswith("[]"):
            mended = "array"
        if mended is None and isinstance(name, str) and name.lower() in TYPES:
            mended = name.lower()
        if mended and isinstance(name, str):
            names.append(mended)
            if (format_ := TYPE_FORMATS.get(name.lower())) is not None:
                out.setdefault("format", format_)
        if name == "file":  # Swagger 2.0's own word
            continue
        meant = f"read as {mended!r}" if mended else "any type is accepted"
        if name is not None:
            report("schema-type", "type", f"{str(name)[:80]!r} is no type of JSON Schema; {meant}")
        if not mended:
            return []
    return list(dict.fromkeys(names))


def _split(written: Any) -> list[Any]:
    """`string | null` as the types that are meant; anything else as it is."""
    parts = [part.strip() for part in written.split("|")] if isinstance(written, str) else []
    return parts if len(parts) > 1 and all(part in TYPES for part in parts) else [written]


def _settle_enum(out: Object, report: Report, nullable: bool) -> None:
    types = out.get("type", [])
    listed = types if isinstance(types, list) else [types]
    values: dict[tuple[type, str], Any] = {}
    for value in out["enum"]:
        fitting = _fit(value, frozenset(listed)) if listed else value
        if type(fitting) is not type(value):
            report(
                "schema-enum",
                "enum",
                f"the value {_show(value)} is not of type {'/'.join(listed)}; read as {_show(fitting)}",
            )
        values.setdefault((type(fitting), json.dumps(fitting, sort_keys=True)), fitting)
    if not values:
        del out["enum"]
        report("schema-enum", "enum", "the list of values is empty, so nothing could be sent; dropped")
        return
    out["enum"] = list(values.values())
    if None in out["enum"] and listed and "null" not in listed and not nullable:
        report("schema-enum", "enum", f"null is listed but not of type {'/'.join(listed)}; null is accepted")
        out["type"] = [*listed, "null"]


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,), "boolean": (bool,), "integer": (int, float), "number": (int, float), "array": (list,), "object": (dict,),
}  # fmt: skip


def _settle_default(out: Object, report: Report) -> None:
    """A default of another type than the schema's would have a model send what is refused."""
    value, kind = out["default"], out["type"]
    if value is None or kind not in _KINDS:
        return
    fitting = _fit(value, frozenset({kind}))
    if isinstance(fitting, _KINDS[kind]) and (kind == "boolean") == isinstance(fitting, bool):
        if type(fitting) is not type(value):
            report("schema-default", "default", f"{_show(value)} is not of type {kind}; read as {_show(fitting)}")
        out["default"] = fitting
        return
    del out["default"]
    report("schema-default", "default", f"{_show(value)} is not of type {kind}; dropped")


def _fit(value: Any, types: frozenset[str]) -> Any:
    """Return the value as one of the types, if it is merely written as another (`1` for "1"); else the value itself."""
    if types & {"object", "array"}:
        return value
    if isinstance(value, bool) and types <= {"string", "null"}:
        return json.dumps(value)
    if isinstance(value, (int, float)) and types <= {"string", "null"}:
        return str(value)  # as it was written
    if not isinstance(value, str) or "string" in types:
        return value
    try:
        meant = json.loads(value, parse_constant=str)
    except ValueError:
        return value
    if isinstance(meant, bool):
        return meant if "boolean" in types else value
    if isinstance(meant, int):
        return meant if types & {"integer", "number"} else value
    return meant if isinstance(meant, float) and "number" in types else value


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)[:200]
