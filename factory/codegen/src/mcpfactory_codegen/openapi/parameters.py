"""Parameters of an operation and its path, checked against the path template (OpenAPI 3.1 §4.8.12)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, Final

from mcpfactory_codegen.ir import ApiParameter, JsonSchema
from mcpfactory_codegen.openapi import swagger2
from mcpfactory_codegen.openapi.content import choose_media_type, read_media_schema
from mcpfactory_codegen.openapi.context import Node, UnusableOperationError
from mcpfactory_runtime.upstream.operation import STYLES, ParameterLocation, Style, forbidden_header_reason

_NOT_OURS: Final = frozenset({"accept", "content-type"})
"""Header parameters that OpenAPI ignores, except `Authorization` (3.1 §4.8.12.1)."""
_ALWAYS_SENT: Final = frozenset({"content-length", "host"})
"""Headers that the HTTP client sends itself, so that an operation may require them."""
_SHELL: Final = ("name", "description", "required", "deprecated", "allowEmptyValue", "explode", "allowReserved")
_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_EXPRESSION: Final = re.compile(r"\{([.;+/#]*)([^{}=:?]*?)(?:=([^{}]*))?([*+]?)\}")
_WILDCARDS: Final = {"*": "[^/]+", "**": ".+"}  # wildcards of google.api.http → regular expressions
_HINT: Final = "a parameter has `name`, `in` and `schema`"


def normalize_path_template(path: str, names: frozenset[str]) -> tuple[str, dict[str, str]]:
    """Return the path with each parameter in `names` written as `{id}`, and the patterns of values with slashes.

    Documents also write `:id`, `<int:id>` and `{id:[0-9]+}`. Operators of RFC 6570 (`{.id*}`) are removed, because
    `style` and `explode` have the same meaning. The values of `{+name}`, `{name+}` and `{name=shelves/*}`
    (google.api.http) have slashes. The fragment distinguishes paths that differ only in such a pattern.
    """
    patterns: dict[str, str] = {}

    def expression(match: re.Match[str]) -> str:
        before, name, pattern, after = match.groups()
        if match[0][1:-1] in names or not name:
            return match[0]
        if pattern not in (None, "*") or "+" in before + after:
            patterns[name] = pattern or "**"
        return f"{{{name}}}" if name in names or name in patterns else match[0]

    plain = _EXPRESSION.sub(expression, path)

    def template(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        return f"{{{name}}}" if name in names and f"{{{name}}}" not in plain else match[0]

    shapes = ",".join(pattern.replace("/", ".") for pattern in patterns.values() if pattern != "**")
    return _OTHER_TEMPLATE.sub(template, plain) + (f"#{shapes}" if shapes else ""), patterns


def merge_parameters(item: Node, operation: Node, path: str) -> list[Node]:
    """Return the path item's parameters, overridden by the operation's parameters."""
    merged: dict[tuple[str, str], Node] = {}
    for owner in (item, operation):
        here: set[tuple[str, str]] = set()
        for node in _listed(owner, path):
            place, name = node.value["in"], node.value["name"]
            key = (place, name.lower() if place == "header" else name)
            if key in here:
                message = f"the {place} parameter {name!r} is listed twice; the first one is used"
                node.report("parameter-duplicate", message)
                continue
            here.add(key)
            merged[key] = node
    return list(merged.values())


def _listed(owner: Node, path: str) -> Iterator[Node]:
    written = owner.at("parameters").mapping()
    if isinstance(written.value, dict) and all(isinstance(one, dict) for one in written.value.values()):
        message = "`parameters` is an object; read as a list, with its keys as names"
        written.report("parameter-shape", message, _HINT)
        nodes = list(written.members())
    else:
        if not isinstance(written.value, list | None):
            written.report("parameter-invalid", "`parameters` has to be a list; left out", _HINT)
        nodes = [("", one) for one in written.elements()]
    for index, (key, one) in enumerate(nodes):
        target = one.target()
        if target is None:
            continue
        if isinstance(target.value, dict):
            target = _normalized(target, path, key)
        if all(isinstance(target.table.get(key), str) and target.value[key] for key in ("name", "in")):
            yield target
        else:
            place = Node(written.context, None, written.location.down(index))
            place.report("parameter-invalid", "this is not a parameter with `name` and `in`; left out", _HINT)


def read_parameters(
    found: list[Node], path: str, patterns: dict[str, str], operation: Node
) -> tuple[ApiParameter, ...]:
    """Return the parameters of one operation, and report problems with the path template at the operation.

    `patterns` has the patterns of the path parameters whose values have slashes.
    """
    parameters = []
    for node in found:
        cache = node.context.parameters
        if node.location not in cache:
            cache[node.location] = _read(node)
        if (parameter := cache[node.location]) is not None:
            parameters.append(parameter)
    fitting = _fit_template(parameters, path, operation)
    return tuple(
        _with_segments(one, patterns) if one.place == "path" and one.name in patterns else one for one in fitting
    )


def _with_segments(parameter: ApiParameter, patterns: dict[str, str]) -> ApiParameter:
    """Return a path parameter whose value has slashes and matches a pattern such as `shelves/*/books/*`."""
    schema, pattern = parameter.schema, patterns[parameter.name]
    if pattern != "**" and isinstance(schema, dict) and schema.get("type") == "string" and "pattern" not in schema:
        pieces = [_WILDCARDS.get(one, re.escape(one)) for one in re.split(r"(\*\*?)", pattern)]
        schema = {**schema, "pattern": f"^{''.join(pieces)}$"}
    plain = parameter.style in ("", "simple") and not parameter.content_type
    return dataclasses.replace(parameter, schema=schema, style="segments" if plain else parameter.style)


def _read(node: Node) -> ApiParameter | None:
    where, name = node.value["in"], node.value["name"]
    if where not in STYLES:
        known = ", ".join(STYLES)
        message = f"the parameter {name[:80]!r} is in {where[:40]!r}, which is not one of {known}; left out"
        node.report("parameter-invalid", message)
        return None
    if where == "header" and name.lower() in _NOT_OURS:
        message = f"the header {name!r} is set from the media types of the operation; left out"
        node.report("parameter-ignored", message, "describe the media types in `content`")
        return None
    if where == "header" and (reason := forbidden_header_reason(name)):
        if node.value.get("required") is True and name.lower() not in _ALWAYS_SENT:
            message = f"it requires the header {name[:80]!r}, which {reason}"
            raise UnusableOperationError("parameter-header", node.location, message)
        node.report("parameter-header", f"the header {name[:80]!r} {reason}; left out")
        return None
    old = node.context.spec.shape == "2"
    nested = swagger2.nested_styles(node) if old else ()
    node = swagger2.parameter(node) if old else _normalized_style(node)
    value = node.value
    shell: dict[str, Any] = {key: value[key] for key in _SHELL if key in value}
    node.check("Parameter", {**shell, "in": "query" if where == "querystring" else where})
    schema, content_type = _schema(node)
    if where == "path" and value.get("required") is not True:
        message = f"the path parameter {name[:80]!r} lacks `required: true`; read as required"
        node.report("parameter-required", message)
    explode = value.get("explode")
    return ApiParameter(
        place=where,
        name=name,
        schema=schema,
        required=value.get("required") is True or where == "path",
        description=node.at("description").text(),
        deprecated=value.get("deprecated") is True,
        style="" if content_type else _style(node.at("style"), where),
        explode=explode if isinstance(explode, bool) and not content_type else None,
        allow_reserved=value.get("allowReserved") is True,
        content_type=content_type,
        nested=nested,
        example=node.example(),
    )


def _schema(node: Node) -> tuple[JsonSchema, str]:
    """Return the schema of a parameter, and the media type if `content` describes the parameter."""
    if "schema" in node.value:
        schema = node.at("schema")
        if node.context.spec.shape == "2":
            schema = node.with_value(schema.value)
        return schema.schema("request"), ""
    if (media := choose_media_type(node.at("content"))) is not None:
        found = read_media_schema(media, "request")
        return ({} if found is None else found), media.content_type
    if {"type", "enum", "items"} & node.value.keys():
        message = "`type` is in the parameter itself, as in Swagger 2.0; read as its schema"
        node.report("parameter-shape", message, "move it below `schema`")
        return node.with_value(swagger2.extract_inline_schema(node.value)).schema("request"), ""
    message = f"the parameter {node.value['name'][:80]!r} has neither `schema` nor `content`; anything is accepted"
    node.report("parameter-schema", message)
    return {}, ""


def _style(written: Node, where: ParameterLocation) -> Style:
    style = next((one for one in STYLES[where] if one == written.value), None)
    if style is not None or written.value is None:
        return style or ""
    usual = next(iter(STYLES[where]), "")
    message = f"the style {str(written.value)[:40]!r} does not exist in {where}; the default {usual!r} is used"
    written.report("parameter-style", message, f"one of {', '.join(STYLES[where])}")
    return ""


def _fit_template(parameters: list[ApiParameter], path: str, operation: Node) -> tuple[ApiParameter, ...]:
    names = tuple(dict.fromkeys(_TEMPLATE.findall(path)))
    if "" in names:
        message = f"the path {path[:200]!r} has empty braces"
        hint = "write the name of the parameter between the braces"
        raise UnusableOperationError("path-invalid", operation.location, message, hint)
    declared = {parameter.name for parameter in parameters if parameter.place == "path"}
    missing = [name for name in names if name not in declared]
    unused = [one for one in parameters if one.place == "path" and one.name not in names]
    fitting: list[ApiParameter] = []
    for parameter in parameters:
        if parameter.place != "path" or parameter.name in names:
            fitting.append(parameter)
            continue
        twin = next((name for name in missing if name.casefold() == parameter.name.casefold()), None)
        if twin is None and len(unused) == len(missing) == 1:
            twin = missing[0]
        if twin is None:
            message = f"the path parameter {parameter.name[:80]!r} does not occur in the path; left out"
            operation.report("parameter-unused", message, "add it to the path, or remove it")
            continue
        missing.remove(twin)
        fitting.append(dataclasses.replace(parameter, name=twin))
        message = f"the path has {twin!r}, the parameter is named {parameter.name!r}; treated as the same"
        operation.report("parameter-undeclared", message)
    for name in list(missing):
        given = next((one for one in fitting if one.place == "query" and one.name == name), None)
        if given is not None:
            missing.remove(name)
            moved = dataclasses.replace(given, place="path", required=True, style="", explode=None)
            fitting[fitting.index(given)] = moved
            message = f"the parameter {name[:80]!r} is declared in query, but the path contains it; read as `in: path`"
            operation.report("parameter-location", message, "write `in: path`")
    for name in missing:
        message = f"the path has {{{name[:80]}}}, but no such parameter is declared; added as a string"
        operation.report("parameter-undeclared", message, "declare it with `in: path`")
        fitting.append(ApiParameter("path", name, {"type": "string"}, required=True))
    return tuple(fitting)


# --- common mistakes with only one plausible meaning ---

_PLACES: Final = {
    "headers": "header", "cookies": "cookie", "querystring": "querystring", "params": "query", "form": "formData",
    "formdata": "formData",
}  # fmt: skip
_STYLES: Final = {
    # wrong style, such as a collectionFormat of Swagger 2.0 → (correct style, explode)
    "csv": ("form", False), "simple": ("form", False), "comma": ("form", False), "multi": ("form", True),
    "ssv": ("spaceDelimited", False), "tsv": ("tabDelimited", False), "pipes": ("pipeDelimited", False),
    "deepobject": ("deepObject", True), "form": ("form", None), "spacedelimited": ("spaceDelimited", False),
    "pipedelimited": ("pipeDelimited", False),
}  # fmt: skip
_OTHER_TEMPLATE: Final = re.compile(r"(?<=/):(\w+)|<(?:\w+:)?(\w+)>|\{(\w[\w.-]*)[:?][^{}]*\}")


def _normalized(node: Node, path: str, key: str) -> Node:
    """Return a parameter object with `name` and `in` as strings.

    `key` is the parameter's name if `parameters` is an object.
    """
    done = dict(node.value)
    name = done.get("name", key)
    if isinstance(name, (int, float)):
        node.at("name").report("parameter-shape", "the name is not a string; its text is used")
        name = str(name).lower() if isinstance(name, bool) else str(name)
    if not isinstance(name, str) or not name:
        return node
    done["name"] = name
    there = f"{{{name}}}" in path
    where = done.get("in")
    if where is None and not there and not done.keys() & {"schema", "type", "content"}:
        return node.with_value(done)  # without location and schema, the object is probably not a parameter
    if not isinstance(where, str) or where.lower() in {"", "url", "uri", "path", "params"}:
        done["in"] = "path" if there or str(where).lower() == "path" else "query"
    else:
        done["in"] = _PLACES.get(where.lower(), where.lower())
    if done["in"] != where:
        said = "has no `in`" if where is None else f"is in {str(where)[:40]!r}"
        node.report("parameter-location", f"the parameter {name[:80]!r} {said}; read as {done['in']}")
    return node.with_value(done).convert_booleans(
        "required", "deprecated", "explode", "allowReserved", "allowEmptyValue"
    )


def _normalized_style(node: Node) -> Node:
    """Replace a misspelled style or a `collectionFormat` of a query parameter by valid `style` and `explode`."""
    if node.value.get("in") != "query":
        return node
    written = node.value.get("style")
    if "style" not in node.value and "collectionFormat" in node.value:
        own, explodes = swagger2.convert_collection_format(node)
        return node.with_value({**node.value, "style": own, "explode": explodes})
    style, explode = _STYLES.get(written.lower(), ("", None)) if isinstance(written, str) else ("", None)
    if not style or style == written:
        return node
    message = f"the style {str(written)[:40]!r} does not exist in query; read as {style}"
    node.at("style").report("parameter-style", message, f"write {style}, and explode")
    return node.with_value({**node.value, "style": style, **({} if explode is None else {"explode": explode})})
