"""Translation of Google API discovery documents (`discovery#restDescription`, version 1) to OpenAPI.

Common parameters for the transport (alt, prettyPrint, quotaUser, …) are omitted. The parameters `key`, `access_token`
and `oauth_token` are credentials. Many methods of one API share a path such as `v1/{+name}`. A shared path gets the
method's ID as a fragment, which is never sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_codegen.sources.translation_helpers import (
    OpenApiDraft,
    Translation,
    iterate_objects,
    make_json_pointer,
    table,
    text,
    texts,
    without_empty,
)

_GOOGLE: Final = ("googleapis.com", "google.com", "youtube.com")
_AUTHORIZE: Final = "https://accounts.google.com/o/oauth2/v2/auth"
_TOKEN: Final = "https://oauth2.googleapis.com/token"  # noqa: S105 - this URL is not a secret
_OAUTH: Final = "Oauth2"
_KEY: Final = "ApiKey"
_TEMPLATE: Final = re.compile(r"\{([+/#.;?&]?)([^{}]*?)\*?\}")
_OF_ALL: Final = frozenset({"fields"})
"""Common parameters that are useful for models, because they shorten responses."""
_PLAIN_PLACES: Final = frozenset({"projects", "locations", "organizations", "folders", "customers", "accounts"})
# problems that are not reported, because every document has them
_QUIET: Final = frozenset({"path-unusual-syntax"})
_NUMBERS: Final = {"integer": int, "number": float}


def is_google_discovery(data: dict[str, Any]) -> bool:
    """Return True if the data is a discovery document."""
    if data.get("kind") == "discovery#restDescription":
        return True
    return "discoveryVersion" in data and bool(table(data, "resources") or table(data, "methods"))


@dataclass(frozen=True, slots=True)
class _Method:
    node: dict[str, Any]
    origin: str
    resources: tuple[str, ...]
    name: str

    @property
    def id(self) -> str:
        return text(self.node, "id") or ".".join((*self.resources, self.name))


def translate_google_discovery(data: dict[str, Any]) -> Translation:
    """Translate a discovery document to OpenAPI."""
    title = data.get("title") or data.get("canonicalName") or data.get("name")
    draft = OpenApiDraft(title, data.get("version") or data.get("revision"), data.get("description"))
    root = text(data, "rootUrl") or _root_of(text(data, "baseUrl"))
    if root:
        draft.servers.append({"url": root.rstrip("/")})
        draft.origins["/servers"] = "/rootUrl"
    _schemes(draft, data, root)
    schemas = table(data, "schemas")
    for name, schema in schemas.items():
        draft.schemas[name] = _schema(schema)
        draft.origins[make_json_pointer("components", "schemas", name)] = make_json_pointer("schemas", name)
    draft.origins["/info"] = ""
    required = _required(schemas)
    for method in _methods(data):
        _add(draft, data, method, required)
    return draft.done(_QUIET)


def _root_of(base: str) -> str:
    found = re.match(r"https?://[^/]+", base)
    return found[0] if found else ""


def _prefix(data: dict[str, Any]) -> str:
    path = data.get("servicePath")
    if not isinstance(path, str):
        path = text(data, "basePath") or text(data, "baseUrl").removeprefix(_root_of(text(data, "baseUrl")))
    return f"/{path.strip('/')}" if path.strip("/") else ""


def _schemes(draft: OpenApiDraft, data: dict[str, Any], root: str) -> None:
    scopes = table(table(table(data, "auth"), "oauth2"), "scopes")
    host = root.rstrip("/").partition("://")[2].partition("/")[0]
    if scopes and host.endswith(_GOOGLE):
        described = {name: text(one, "description") for name, one in scopes.items()}
        flow = {"authorizationUrl": _AUTHORIZE, "tokenUrl": _TOKEN, "scopes": described}
        draft.schemes[_OAUTH] = {"type": "oauth2", "flows": {"authorizationCode": flow}}
    elif scopes:
        draft.schemes[_OAUTH] = {"type": "http", "scheme": "bearer"}
    if "key" in table(data, "parameters"):
        description = text(table(data, "parameters")["key"], "description")
        draft.schemes[_KEY] = {"type": "apiKey", "in": "query", "name": "key", "description": description}
    draft.origins[make_json_pointer("components", "securitySchemes", _OAUTH)] = "/auth/oauth2"
    draft.origins[make_json_pointer("components", "securitySchemes", _KEY)] = "/parameters/key"


def _methods(node: dict[str, Any], origin: str = "", resources: tuple[str, ...] = ()) -> Iterator[_Method]:
    for name, method in table(node, "methods").items():
        if isinstance(method, dict):
            yield _Method(method, origin + make_json_pointer("methods", name), resources, name)
    for name, resource in table(node, "resources").items():
        if isinstance(resource, dict):
            yield from _methods(resource, origin + make_json_pointer("resources", name), (*resources, name))


def _add(draft: OpenApiDraft, data: dict[str, Any], method: _Method, required: dict[str, dict[str, list[str]]]) -> None:
    node = method.node
    verb = text(node, "httpMethod").lower()
    written = text(node, "path") if isinstance(node.get("path"), str) else text(node, "flatPath")
    if not re.fullmatch(r"[a-z]{3,10}", verb):
        reason = "it has no HTTP method"
        draft.problems.add("operation-invalid", method.origin, f"{method.id[:200]}: {reason}; left out")
        draft.skip_operation(verb, written, method.id, method.origin, reason)
        return
    path = _prefix(data) + f"/{written.lstrip('/')}"
    operation = _operation(data, method, path)
    request = text(table(node, "request"), "$ref")
    if request:
        operation["requestBody"] = {"required": True, "content": _json(_request(request, required, method.id))}
    shown = _TEMPLATE.sub(r"{\2}", path)
    if "{+" in path:
        shown += f"#{method.id}"
    draft.add(verb, shown, operation, method.origin)
    for index, parameter in enumerate(operation["parameters"]):
        owner = method.origin if parameter["name"] in table(node, "parameters") else ""
        for below in ((), ("schema",)):
            at = make_json_pointer("paths", shown, verb, "parameters", index, *below)
            draft.origins[at] = owner + make_json_pointer("parameters", parameter["name"])
    draft.origins[make_json_pointer("paths", shown, verb, "requestBody")] = f"{method.origin}/request"
    draft.origins[make_json_pointer("paths", shown, verb, "responses")] = f"{method.origin}/response"
    _add_upload(draft, method, operation, verb)


def _add_upload(draft: OpenApiDraft, method: _Method, operation: dict[str, Any], verb: str) -> None:
    """Add an operation that uploads only the content, with another path and a file as its body."""
    upload = table(method.node, "mediaUpload")
    path = text(table(table(upload, "protocols"), "simple"), "path")
    if not path:
        return
    kinds = texts(upload, "accept")
    kind = kinds[0] if len(kinds) == 1 and "*" not in kinds[0] else "application/octet-stream"
    content = {kind: {"schema": {"type": "string", "contentMediaType": kind}}}
    described = operation.get("description")
    words = f"Uploads the content of a file. {described}" if isinstance(described, str) else "Uploads the content."
    uploading = {
        **operation,
        "operationId": f"{method.id}.upload",
        "description": words,
        "requestBody": {"required": True, "content": content},
    }
    shown = "/" + _TEMPLATE.sub(r"{\2}", path).lstrip("/") + "?uploadType=media"
    draft.add(verb, shown, uploading, method.origin)


def _operation(data: dict[str, Any], method: _Method, path: str) -> dict[str, Any]:
    node = method.node
    response = text(table(node, "response"), "$ref")
    # the tag is the innermost resource that is not a generic container such as `projects`
    telling = [name for name in method.resources if name not in _PLAIN_PLACES] or method.resources
    answer: dict[str, Any] = {"description": "The answer"}
    if response:
        answer["content"] = _json({"$ref": component_schema_ref(response)})
    return {
        "operationId": method.id,
        "tags": list(telling[-1:]),
        "parameters": _parameters(data, method, path),
        "responses": {"200": answer},
        "security": _security(data, node),
        **without_empty(
            description=node.get("description"), deprecated=True if node.get("deprecated") is True else None
        ),
    }


def _security(data: dict[str, Any], node: dict[str, Any]) -> list[dict[str, list[str]]]:
    """Return the security alternatives: the first OAuth scope, or an API key for public data."""
    scopes = [one for one in texts(node, "scopes") if one in table(table(table(data, "auth"), "oauth2"), "scopes")]
    found: list[dict[str, list[str]]] = [{_OAUTH: scopes[:1]}] if scopes else []
    return [*found, {_KEY: []}] if "key" in table(data, "parameters") else found


def _parameters(data: dict[str, Any], method: _Method, path: str) -> list[dict[str, Any]]:
    named, of_all = table(method.node, "parameters"), table(data, "parameters")
    order = [name for name in texts(method.node, "parameterOrder") if name in named]
    reads = text(method.node, "httpMethod").upper() == "GET" and "response" in method.node
    wanted = [name for name in of_all if name in _OF_ALL and reads]
    wanted += ["alt"] if method.node.get("supportsMediaDownload") is True and "alt" in of_all else []
    expanded = {name: operator for operator, name in _TEMPLATE.findall(path)}
    known = {**of_all, **named}
    return [_parameter(name, known[name], expanded) for name in dict.fromkeys([*order, *named, *wanted])]


def _parameter(name: str, node: Any, expanded: dict[str, str]) -> dict[str, Any]:
    if not isinstance(node, dict):
        return {"name": name, "in": "query", "schema": {}}
    place = "path" if name in expanded else text(node, "location") or "query"
    schema = _schema({key: value for key, value in node.items() if key not in {"description", "required", "location"}})
    built: dict[str, Any] = {"name": name, "in": place, "schema": schema}
    if isinstance(schema, dict) and schema.pop("deprecated", False):
        built["deprecated"] = True
    built |= without_empty(description=node.get("description"))
    # some parameters are marked as required only in their description
    said = text(node, "description").startswith("Required.") and "default" not in node
    if node.get("required") is True or place == "path" or said:
        built["required"] = True
    if expanded.get(name) == "+":
        built["style"] = "segments"
    return built


def component_schema_ref(name: str) -> str:
    """Return a reference to a schema by its id."""
    return f"#{make_json_pointer('components', 'schemas', name)}"


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _request(name: str, required: dict[str, dict[str, list[str]]], method: str) -> dict[str, Any]:
    reference = {"$ref": component_schema_ref(name)}
    needed = required.get(name, {}).get(method)
    return {"allOf": [reference, {"required": needed}]} if needed else reference


def _required(schemas: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for name, schema in schemas.items():
        for key, member in table(schema, "properties").items():
            for method in texts(table(member, "annotations"), "required"):
                found.setdefault(name, {}).setdefault(method, []).append(key)
    return found


_COPIED: Final = ("title", "description", "format", "pattern", "deprecated", "enum")


def _schema(node: Any) -> Any:
    """Convert a schema of a discovery document (a subset of JSON Schema draft 3) to JSON Schema 2020-12."""
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        described = {key: node[key] for key in ("description", "deprecated") if key in node}
        return {"$ref": component_schema_ref(node["$ref"]), **described, **_read_only(node)}
    built: dict[str, Any] = {key: node[key] for key in _COPIED if key in node} | _read_only(node)
    kind = node.get("type")
    if kind != "any" and kind is not None:
        built["type"] = kind
    built |= _numbers(node, kind)
    if isinstance(node.get("enumDescriptions"), list) and any(node["enumDescriptions"]):
        built["x-enum-descriptions"] = node["enumDescriptions"]
    for key in ("items", "additionalProperties"):
        if key in node:
            built[key] = _schema(node[key])
    properties = node.get("properties")
    if isinstance(properties, dict):
        built["properties"] = {name: _schema(one) for name, one in properties.items()}
        needed = [name for name, one in properties.items() if isinstance(one, dict) and one.get("required") is True]
        built |= without_empty(required=needed)
    branches = [
        one["$ref"] for _, one in iterate_objects(table(node, "variant"), "map") if isinstance(one.get("$ref"), str)
    ]
    built |= without_empty(anyOf=[{"$ref": component_schema_ref(one)} for one in branches])
    if node.get("repeated") is True:
        described = {key: built.pop(key) for key in ("description", "deprecated") if key in built}
        return {"type": "array", "items": built, **described}
    return built


def _read_only(node: dict[str, Any]) -> dict[str, Any]:
    said = text(node, "description").lstrip(" [").lower().startswith("output only")
    return {"readOnly": True} if node.get("readOnly") is True or said else {}


def _numbers(node: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Convert bounds and defaults, which are strings in the document. Ignore bounds unless the type is a number."""
    found: dict[str, Any] = {}
    if isinstance(kind, str) and kind in _NUMBERS:
        for key in ("minimum", "maximum"):
            if (bound := _number(node.get(key), kind)) is not None:
                found[key] = bound
    default = node.get("default")
    if isinstance(default, str) and kind == "boolean":
        default = {"true": True, "false": False}.get(default.lower())
    elif isinstance(default, str) and isinstance(kind, str) and kind in _NUMBERS:
        default = _number(default, kind)
    return found if default is None else {**found, "default": default}


def _number(value: Any, kind: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = _NUMBERS[kind](value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 2**64 else None
