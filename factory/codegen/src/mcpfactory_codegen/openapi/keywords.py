"""Tables of schema keywords: their permitted values in JSON Schema 2020-12, and the handling of other values.

Unknown keywords are dropped with a warning, so that each resulting schema satisfies the metaschema. Each check of a
keyword returns the value to keep, or raises ValueError with the reason.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from mcpfactory_runtime.schemas.walk import IN_PLACE, TYPES

TYPE_REPAIRS: Final[dict[str, str]] = {
    # wrong but common type names, with the correct names; "" means any type
    "int": "integer", "int32": "integer", "int64": "integer", "long": "integer", "timestamp": "integer",
    "float": "number", "double": "number", "decimal": "number", "numeric": "number",
    "bool": "boolean",
    "str": "string", "text": "string", "date": "string", "datetime": "string", "date-time": "string", "time": "string",
    "uuid": "string", "uri": "string", "url": "string", "email": "string", "enum": "string", "binary": "string",
    "byte": "string", "base64": "string", "file": "string",
    "dict": "object", "map": "object", "hash": "object", "json": "object", "struct": "object",
    "list": "array", "set": "array", "tuple": "array",
    "any": "", "mixed": "", "undefined": "", "": "", "none": "null", "nil": "null",
}  # fmt: skip

TYPE_FORMATS: Final[dict[str, str]] = {
    "int32": "int32", "int64": "int64", "long": "int64", "float": "float", "double": "double", "date": "date",
    "datetime": "date-time", "date-time": "date-time", "time": "time", "uuid": "uuid", "uri": "uri", "url": "uri",
    "email": "email", "binary": "binary", "file": "binary", "byte": "byte", "base64": "byte",
}  # fmt: skip
"""For each invalid but repairable type, the format that the type implies."""

ANNOTATIONS: Final = frozenset({"title", "description", "default", "deprecated", "examples"})

MEANINGS: Final = frozenset(
    {"x-enum-descriptions", "x-enumDescriptions", "x-enumNames", "x-enum-varnames", "x-enum-names", "x-ms-enum"}
)
"""Extensions that describe the values of an enumeration, and are kept unchanged."""
DROPPED: Final = frozenset(
    {
        # identifiers, definitions and metadata, which the output does not need
        "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary", "definitions", "id",
        # keywords that only OpenAPI has, some of which `schema_translation` converts to JSON Schema
        "discriminator", "example", "externalDocs", "nullable", "readOnly", "writeOnly", "xml", "collectionFormat",
        # keywords of older drafts, which `convert_old_draft_keywords` converts
        "additionalItems", "dependencies",
        # keywords of other objects that authors often write into schemas by mistake
        "allowEmptyValue", "links",
    }
)  # fmt: skip


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise ValueError("must be true or false")


def _number(value: Any) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not abs(value) <= _LARGEST:  # `not <=` is also true for NaN
            raise ValueError("the number is too large for JSON parsers")
        return value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", value):
        return float(value) if "." in value else int(value)
    raise ValueError("must be a number")


_LARGEST: Final = sys.float_info.max


def _positive(value: Any) -> int | float:
    number = _number(value)
    if number <= 0:
        raise ValueError("must be greater than 0")
    return number


def _count(value: Any) -> int:
    number = _number(value)
    if number < 0 or number != int(number):
        raise ValueError("must be a whole number of 0 or more")
    return int(number)


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("must be a list of names")
    return list(dict.fromkeys(value))


def _name_lists(value: Any) -> dict[str, list[str]]:
    if not isinstance(value, dict):
        raise ValueError("must be an object of lists of names")
    return {name: _names(names) for name, names in value.items()}


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("must be a list of values")
    return value


def _examples(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):  # an object contains Example Objects by name, as in a media type
        return [one["value"] if isinstance(one, dict) and "value" in one else one for one in value.values()]
    return [value]


def _any(value: Any) -> Any:
    """Accept any value."""
    return value


_FOREIGN: Final = re.compile(r"(?<!\\)\(\?(?:[aiLmsux]+[:)-]|>|P[=>]|#|\()|(?<!\\)(?:[*+?]|\{\d+,?\d*\})\+")
"""Constructs of Python, Perl and Java: inline flags, atomic groups, comments, conditions, possessive quantifiers."""
_REPEATED: Final = re.compile(r"\{([0-9]{7,20})")
_EDGES: Final = re.compile(r"\\(.)", re.DOTALL)


@lru_cache(maxsize=4096)
def _expression(value: str) -> str:
    """Return an ECMA-262 regular expression that Python's `re` can also compile."""
    if len(value) > 5000:
        raise ValueError("the expression is longer than 5000 characters")
    if any(int(count) > MAX_BOUND for count in _REPEATED.findall(value)):
        raise ValueError(f"the expression repeats a part more than {MAX_BOUND:,} times")
    # the slashes of a JavaScript expression are only delimiters
    literal = re.fullmatch(r"/(\^.*)/([a-z]*)", value, re.DOTALL)
    if literal is not None and "i" in literal[2]:
        raise ValueError("the expression ignores case, which a schema pattern cannot express")
    text = literal[1] if literal is not None else value
    if (foreign := _FOREIGN.search(text)) is not None:
        raise ValueError(
            f"{foreign[0][:20]!r} is not supported in JavaScript's regular expressions, or means something else in JavaScript"
        )
    text = _EDGES.sub(lambda match: {"A": "^", "Z": "$", "z": "$"}.get(match[1], match[0]), text)
    if "\\k<" not in text:
        text = re.sub(r"\(\?<([A-Za-z_]\w*)>", "(", text)  # Python's `re` has another syntax for named groups
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's warning "possible nested set" can be ignored
            re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not every client can read this regular expression ({error})") from None
    return text


SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("title", "description", "format", "contentEncoding", "contentMediaType"), _text),
    **dict.fromkeys(("deprecated", "uniqueItems"), _flag),
    **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"), _number),
    **{f"{bound}{what}": _count for what in ("Length", "Items", "Contains", "Properties") for bound in ("max", "min")},
    **dict.fromkeys(("const", "default"), _any),
    "pattern": lambda value: _expression(_text(value)),
    "multipleOf": _positive,
    "required": _names,
    "dependentRequired": _name_lists,
    "enum": _list,
    "examples": _examples,
}


# --- steps on a whole translated schema: types, null, and keywords of older drafts ---


Object = dict[str, Any]
Report = Callable[[str, str, str], None]
"""Callback that reports a problem: code, keyword, message."""

_BOUNDS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def convert_old_draft_keywords(out: Object, node: Object) -> None:
    """Convert keywords of drafts 4 to 2019-09 to their current form. `node` is the original schema."""
    for exclusive, bound in _BOUNDS:
        if node.get(exclusive) is True and bound in out:
            out[exclusive] = out.pop(bound)
    dependencies = node.get("dependencies")
    # OpenAPI never allowed schemas in `dependencies`, so that only lists are converted
    if isinstance(dependencies, dict):
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
    """Extend the schema by null, as `nullable` of OpenAPI 3.0 requires (§4.7.24)."""
    applied = IN_PLACE & out.keys()
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


def normalize_type(out: Object, node: Object, report: Report, *, nullable: bool) -> None:
    """Normalize `type`, and convert `enum` and `default` to that type.

    `nullable` means that null will be added to the type afterwards.
    """
    if "type" in out:
        if isinstance(node["type"], str) and "|" in node["type"]:
            report(
                "schema-type",
                "type",
                f"{node['type'][:80]!r} is not a type of JSON Schema; read as a list if it is one",
            )
        types = _types(out, node["type"], report)
        if types:
            out["type"] = types[0] if len(types) == 1 and not isinstance(node["type"], list) else types
        else:
            del out["type"]
    if "enum" in out:
        _normalize_enum(out, report, nullable)
    if "default" in out and isinstance(out.get("type"), str):
        _normalize_default(out, report)


def _types(out: Object, written: Any, report: Report) -> list[str]:
    names: list[str] = []
    for name in written if isinstance(written, list) else _split(written):
        if isinstance(name, str) and name in TYPES:
            names.append(name)
            continue
        repaired = TYPE_REPAIRS.get(name.lower()) if isinstance(name, str) else None
        if isinstance(name, str) and name.endswith("[]"):
            repaired = "array"
        if repaired is None and isinstance(name, str) and name.lower() in TYPES:
            repaired = name.lower()
        if repaired and isinstance(name, str):
            names.append(repaired)
            if (format_ := TYPE_FORMATS.get(name.lower())) is not None:
                out.setdefault("format", format_)
        if name == "file":  # the type "file" is valid in Swagger 2.0
            continue
        intended = f"read as {repaired!r}" if repaired else "any type is accepted"
        if name is not None:
            report("schema-type", "type", f"{str(name)[:80]!r} is not a type of JSON Schema; {intended}")
        if not repaired:
            return []
    return list(dict.fromkeys(names))


def _split(written: Any) -> list[Any]:
    """Split `string | null` into a list of types, or return any other value in a list."""
    parts = [part.strip() for part in written.split("|")] if isinstance(written, str) else []
    return parts if len(parts) > 1 and all(part in TYPES for part in parts) else [written]


def _normalize_enum(out: Object, report: Report, nullable: bool) -> None:
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
        report("schema-enum", "enum", "the list of values is empty, so no value would be valid; dropped")
        return
    out["enum"] = list(values.values())
    if None in out["enum"] and listed and "null" not in listed and not nullable:
        report("schema-enum", "enum", f"null is listed but not of type {'/'.join(listed)}; null is accepted")
        out["type"] = [*listed, "null"]


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,), "boolean": (bool,), "integer": (int, float), "number": (int, float), "array": (list,), "object": (dict,),
}  # fmt: skip


def _normalize_default(out: Object, report: Report) -> None:
    """Drop a default that does not match the schema's type, because a model would send an invalid value."""
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
    """Convert the value to one of the types if its text permits, such as "1" to `1`."""
    if types & {"object", "array"}:
        return value
    if isinstance(value, bool) and types <= {"string", "null"}:
        return json.dumps(value)
    if isinstance(value, (int, float)) and types <= {"string", "null"}:
        return str(value)  # a number keeps its text from the document
    if not isinstance(value, str) or "string" in types:
        return value
    try:
        intended = json.loads(value, parse_constant=str)
    except ValueError:
        return value
    if isinstance(intended, bool):
        return intended if "boolean" in types else value
    if isinstance(intended, int):
        return intended if types & {"integer", "number"} else value
    return intended if isinstance(intended, float) and abs(intended) <= _LARGEST and "number" in types else value


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)[:200]


# --- bounds that no value satisfies ---


MAX_BOUND: Final = 1_000_000
"""Largest permitted minimum of characters, items or properties, because no call contains more."""
_PAIRS: Final = (
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
    ("minimum", "maximum"),
)


def drop_unsatisfiable_bounds(out: dict[str, Any], report: Report) -> None:
    """Drop contradictory bounds, and lower bounds that no call can reach."""
    for low, high in _PAIRS:
        least, most = out.get(low), out.get(high)
        if least is None:
            continue
        if low != "minimum" and least > MAX_BOUND:
            del out[low]
            report("schema-bounds", low, f"{low} is more than {MAX_BOUND:,}, which no call can reach; dropped")
        elif most is not None and least > most:
            del out[low], out[high]
            report("schema-bounds", low, f"{low} is more than {high}, so no value is valid; both were dropped")


def move_enum_to_items(out: dict[str, Any], report: Report) -> None:
    """Move enum values next to `type: array` to the items, because the values cannot match an array."""
    values, items = out.get("enum"), out.get("items", {})
    if out.get("type") in ("array", ["array"]) and isinstance(values, list) and isinstance(items, dict):
        if any(isinstance(value, list) or value is None for value in values):
            return
        del out["enum"]
        if "$ref" not in items and "enum" not in items and values:
            out["items"] = {**items, "enum": values}
        report("schema-enum", "enum", "the values cannot match an array; read as values of its items")
