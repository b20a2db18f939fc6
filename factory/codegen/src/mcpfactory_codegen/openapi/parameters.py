"""Parameters: those of the path and of the operation together, checked against the path template (OpenAPI 3.1 §4.8.12)."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final

from mcpfactory_codegen.ir import ApiParameter, JsonSchema
from mcpfactory_codegen.openapi import swagger2
from mcpfactory_codegen.openapi.content import choose, read_media
from mcpfactory_codegen.openapi.reading import BrokenError, Reading, check_object, flags
from mcpfactory_codegen.openapi.references import LocatedNode, Location
from mcpfactory_runtime.upstream.operation import STYLES, ParameterLocation, Style, unusable_header

_NOT_OURS: Final = frozenset({"accept", "content-type"})
"""Header parameters of these names are ignored (OpenAPI 3.1 §4.8.12.1); so is `Authorization`, by `credentials`."""
_SHELL: Final = ("name", "description", "required", "deprecated", "allowEmptyValue", "explode", "allowReserved")
_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_HINT: Final = "a parameter has `name`, `in` and `schema`"


def plain_path(path: str, names: frozenset[str]) -> str:
    """Return the path with operators of RFC 6570 taken out of its templates (`{.id*}` → `{id}`): `style` and `explode` say the same.

    Only where that gives one of `names`, the declared path parameters.
    """

    def plain(match: re.Match[str]) -> str:
        name = match[1].lstrip(".;+/#").rstrip("*")
        return "{" + name + "}" if match[1] not in names and name in names else match[0]

    return _normalized_template(_TEMPLATE.sub(plain, path), names)


def gather(reading: Reading, item: LocatedNode, operation: LocatedNode, path: str) -> list[LocatedNode]:
    """Return the parameter objects that apply: the operation's replace the path's of the same name and place."""
    merged: dict[tuple[str, str], LocatedNode] = {}
    for owner in (item, operation):
        here: set[tuple[str, str]] = set()
        for target in _listed(reading, owner, path):
            location, name = target.node["in"], target.node["name"]
            key = (location, name.lower() if location == "header" else name)
            if key in here:
                reading.report(
                    "parameter-duplicate",
                    target.location,
                    f"the {location} parameter {name!r} is listed twice; the first one counts",
                )
                continue
            here.add(key)
            merged[key] = target
    return list(merged.values())


def _listed(reading: Reading, owner: LocatedNode, path: str) -> list[LocatedNode]:
    node, location = reading.references.mapping(owner.node.get("parameters"), owner.location.down("parameters"))
    if node is None:
        return []
    keys: dict[int, str] = {}
    if isinstance(node, dict) and all(isinstance(one, dict) for one in node.values()):
        reading.report(
            "parameter-shape", location, "`parameters` is an object; read as a list, with its keys as names", _HINT
        )
        keys, node = dict(enumerate(node)), list(node.values())
    if not isinstance(node, list):
        reading.report("parameter-invalid", location, "`parameters` has to be a list; left out", _HINT)
        return []
    found = []
    for index, one in enumerate(node):
        target = reading.follow(one, location.down(keys.get(index, index)))
        if target is None:
            continue
        if isinstance(target.node, dict):
            target = LocatedNode(_normalized(reading, *target, path, keys.get(index, "")), target.location)
        if not isinstance(target.node, dict) or not all(
            isinstance(target.node.get(key), str) and target.node[key] for key in ("name", "in")
        ):
            reading.report(
                "parameter-invalid",
                location.down(index),
                "this is no parameter with a `name` and an `in`; left out",
                _HINT,
            )
            continue
        found.append(target)
    return found


def read_parameters(
    reading: Reading, found: list[LocatedNode], path: str, location: Location
) -> tuple[ApiParameter, ...]:
    """Return the parameters of one operation; `location` is the operation's, for problems of the path template."""
    parameters = []
    for target in found:
        if target.location not in reading.parameters:
            reading.parameters[target.location] = _read(reading, target)
        if (parameter := reading.parameters[target.location]) is not None:
            parameters.append(parameter)
    return _fit_template(reading, parameters, path, location)


def _read(reading: Reading, target: LocatedNode) -> ApiParameter | None:
    node, location = target
    where, name = node["in"], node["name"]
    if where not in STYLES:
        known = ", ".join(STYLES)
        reading.report(
            "parameter-invalid",
            location,
            f"the parameter {name[:80]!r} is in {where[:40]!r}, which is none of {known}; left out",
        )
        return None
    if where == "header" and name.lower() in _NOT_OURS:
        return None
    if where == "header" and (reason := unusable_header(name)):
        if node.get("required") is True:
            raise BrokenError("parameter-header", location, f"it requires the header {name[:80]!r}, which {reason}")
        reading.report("parameter-header", location, f"the header {name[:80]!r} {reason}; left out")
        return None
    if reading.spec.shape == "2":
        node = swagger2.parameter(reading, node, location)
    else:
        node = _normalized_style(reading, node, location)
        if "collectionFormat" in node:
            node = swagger2.parameter_in_itself(reading, node, location)
    shell: dict[str, Any] = {key: node[key] for key in _SHELL if key in node}
    check_object(reading, "Parameter", {**shell, "in": "query" if where == "querystring" else where}, location)
    schema, content_type = _schema(reading, node, location)
    required = node.get("required") is True or where == "path"
    if where == "path" and node.get("required") is not True:
        reading.report(
            "parameter-required",
            location,
            f"the path parameter {name[:80]!r} has to say `required: true`; it is required anyway",
        )
    explode = node.get("explode")
    return ApiParameter(
        place=where,
        name=name,
        schema=schema,
        required=required,
        description=reading.text(node.get("description"), location.down("description")),
        deprecated=node.get("deprecated") is True,
        style="" if content_type else _style(reading, node, where, location),
        explode=explode if isinstance(explode, bool) and not content_type else None,
        allow_reserved=node.get("allowReserved") is True,
        content_type=content_type,
        example=reading.example(node, location),
    )


def _schema(reading: Reading, node: dict[str, Any], location: Location) -> tuple[JsonSchema, str]:
    """Return the schema, and the media type when the parameter is described by `content`."""
    if "schema" in node:
        at = location if reading.spec.shape == "2" else location.down("schema")
        return reading.translate(node["schema"], at, "request"), ""
    if (media := choose(reading, node.get("content"), location.down("content"))) is not None:
        schema = read_media(reading, media, "request")
        return ({} if schema is None else schema), media.content_type
    if "type" in node or "enum" in node or "items" in node:
        reading.report(
            "parameter-shape",
            location,
            "`type` stands in the parameter itself, as in Swagger 2.0; read as its schema",
            "move it below `schema`",
        )
        return reading.translate(swagger2.schema_in(node), location, "request"), ""
    reading.report(
        "parameter-schema",
        location,
        f"the parameter {node['name'][:80]!r} has neither `schema` nor `content`; anything is accepted",
    )
    return {}, ""


def _style(reading: Reading, node: dict[str, Any], where: ParameterLocation, location: Location) -> Style:
    written = node.get("style")
    if written is None:
        return ""
    style = next((one for one in STYLES[where] if one == written), None)
    if style is not None:
        return style
    usual = next(iter(STYLES[where]), "")
    message = f"the style {str(written)[:40]!r} does not exist in {where}; the default {usual!r} is used"
    reading.report("parameter-style", location.down("style"), message, f"one of {', '.join(STYLES[where])}")
    return ""


def _fit_template(
    reading: Reading, parameters: list[ApiParameter], path: str, location: Location
) -> tuple[ApiParameter, ...]:
    names = tuple(dict.fromkeys(_TEMPLATE.findall(path)))
    if "" in names:
        raise BrokenError(
            "path-invalid",
            location,
            f"the path {path[:200]!r} has empty braces",
            "write the name of the parameter between the braces",
        )
    declared = {parameter.name for parameter in parameters if parameter.place == "path"}
    missing = [name for name in names if name not in declared]
    fitting: list[ApiParameter] = []
    for parameter in parameters:
        if parameter.place != "path" or parameter.name in names:
            fitting.append(parameter)
            continue
        twin = next((name for name in missing if name.casefold() == parameter.name.casefold()), None)
        if twin is None:
            message = f"the path parameter {parameter.name[:80]!r} does not occur in the path; left out"
            reading.report("parameter-unused", location, message, "add it to the path, or remove it")
            continue
        missing.remove(twin)
        fitting.append(dataclasses.replace(parameter, name=twin))
        reading.report(
            "parameter-undeclared",
            location,
            f"the path says {twin!r}, the parameter {parameter.name!r}; taken for the same",
        )
    for name in list(missing):
        twin_ = next((one for one in fitting if one.place == "query" and one.name == name), None)
        if twin_ is not None:
            missing.remove(name)
            fitting[fitting.index(twin_)] = dataclasses.replace(
                twin_, place="path", required=True, style="", explode=None
            )
            message = f"the parameter {name[:80]!r} is in the path, not in the query as it says; taken for the path's"
            reading.report("parameter-place", location, message, "write `in: path`")
    for name in missing:
        message = f"the path has {{{name[:80]}}}, which no parameter describes; added as text"
        reading.report("parameter-undeclared", location, message, "declare it with `in: path`")
        fitting.append(ApiParameter("path", name, {"type": "string"}, required=True))
    return tuple(fitting)


# --- common mistakes with only one plausible meaning ---

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


def _normalized(reading: Reading, node: dict[str, Any], location: Location, path: str, key: str = "") -> dict[str, Any]:
    """Return a parameter object with a name and a place as texts. `key`: its name in a map that should have been a list."""
    done = dict(node)
    name = done.get("name", key)
    if isinstance(name, (int, float)):
        reading.report("parameter-shape", location.down("name"), "the name is no text; read as it is written")
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
        reading.report("parameter-place", location, f"the parameter {name[:80]!r} {said}; read as {done['in']}")
    return flags(reading, done, location, ("required", "deprecated", "explode", "allowReserved", "allowEmptyValue"))


def _normalized_style(reading: Reading, node: dict[str, Any], location: Location) -> dict[str, Any]:
    """Return a query parameter whose style has a name from elsewhere."""
    written = node.get("style")
    intended = _STYLES.get(written.lower()) if isinstance(written, str) else None
    if intended is None or node.get("in") != "query" or intended[0] == written:
        return node
    message = f"the style {str(written)[:40]!r} does not exist in query; read as {intended[0]}"
    reading.report("parameter-style", location.down("style"), message, f"write {intended[0]}, and explode")
    explode = {} if intended[1] is None else {"explode": intended[1]}
    return {**node, "style": intended[0], **explode}


def _normalized_template(path: str, names: frozenset[str]) -> str:
    """Return the path with `:id`, `<int:id>` and `{id:[0-9]+}` as `{id}`, where that is a declared path parameter."""

    def plain(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        return "{" + name + "}" if name in names and f"{{{name}}}" not in path else match[0]

    return _COLON.sub(plain, path)
