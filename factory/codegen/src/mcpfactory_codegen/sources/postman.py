"""Translation of Postman collections (2.0 and 2.1) to OpenAPI.

Requests become operations, and variables become base URLs or arguments. A collection has examples but no types, so that
responses have the types of saved examples. Arguments are strings unless a body shows another type, and few arguments
are required.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from mcpfactory_codegen.credential_parameters import is_credential_parameter, is_secret
from mcpfactory_codegen.sources.translation_helpers import (
    REDACTED,
    VARIABLE,
    OpenApiDraft,
    Translation,
    infer_schema,
    is_data,
    iterate_objects,
    parse_json_or_none,
    plain_example,
    redacted,
    schema_of_example,
    strip_userinfo,
    table,
    text,
    without_empty,
)
from mcpfactory_codegen.text import PATH_PREFIXES, singular, snake_case, with_whole_words
from mcpfactory_runtime.schemas.walk import DATA, map_schema

_LONE: Final = re.compile(r'(?<!["\w}])\{\{\s*([^{}"]{1,100}?)\s*\}\}(?!["\w{])')
_SEGMENT: Final = re.compile(r":([A-Za-z_][\w.-]*)\Z")
_PREFIX: Final = re.compile(r"version|api_?ver|prefix|base|root|path|env|stage|lang|locale", re.IGNORECASE)
_HEADERS: Final = frozenset(
    {
        "accept", "accept-encoding", "accept-language", "authorization", "cache-control", "connection", "content-length",
        "content-type", "cookie", "host", "origin", "postman-token", "referer", "user-agent", "x-requested-with",
    }
)  # fmt: skip
_REQUIRED: Final = re.compile(r"\s*\(?\s*required\b", re.IGNORECASE)
_HOPS: Final = 8
_METHOD: Final = re.compile(r"[A-Z]{2,20}\Z")
_RAW: Final = {
    "xml": "application/xml",
    "html": "text/html",
    "javascript": "application/javascript",
    "text": "text/plain",
}


def is_postman(data: dict[str, Any]) -> bool:
    """Return True if the data is a Postman collection."""
    node = _collection(data)
    schema = text(table(node, "info"), "schema")
    return isinstance(node.get("item"), list) and ("/collection" in schema or "_postman_id" in table(node, "info"))


def _collection(data: dict[str, Any]) -> dict[str, Any]:
    return table(data, "collection") or data


@dataclass(frozen=True, slots=True)
class _PostmanRequest:
    item: dict[str, Any]
    origin: str
    folders: tuple[str, ...]
    auth: Any

    @property
    def node(self) -> dict[str, Any]:
        request = self.item.get("request")
        return request if isinstance(request, dict) else {"url": request, "method": "GET"}

    @property
    def name(self) -> str:
        return text(self.item, "name")


class _Variables(dict[str, str]):
    """Values of variables by name. The value of a variable of the type `secret` is REDACTED, except a URL."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        found = {
            text(one, "key") or text(one, "id"): one for node in nodes for _, one in iterate_objects(node, "variable")
        }
        self.secrets = {name for name, one in found.items() if text(one, "type") == "secret"}
        super().__init__({name: self._text(one) for name, one in found.items()})

    @staticmethod
    def _text(node: dict[str, Any]) -> str:
        value = node.get("value")
        written = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
        return REDACTED if text(node, "type") == "secret" and "://" not in written else written

    def filled(self, value: Any) -> Any:
        """Replace the variables in a value. If one of them is unknown, return the value unchanged."""
        known = isinstance(value, str) and all(self.get(name) for name in VARIABLE.findall(value))
        return _filled(value, self) if known else value

    def is_credential(self, value: Any) -> bool:
        """Return True if a value contains a variable of the type `secret`."""
        return not self.secrets.isdisjoint(VARIABLE.findall(value if isinstance(value, str) else ""))


@dataclass(frozen=True, slots=True)
class _Address:
    """Parts of a request's URL: base URL, path, and the known fields of the parameters.

    The base URL is "" if unknown.
    """

    base: str
    path: str
    parameters: dict[str, dict[str, Any]]
    query: list[dict[str, Any]]
    variables: _Variables


def translate_postman(data: dict[str, Any]) -> Translation:
    """Translate a collection to OpenAPI."""
    node = _collection(data)
    origin = "" if node is data else "/collection"
    info = table(node, "info")
    version = info.get("version")
    draft = OpenApiDraft(info.get("name"), version if isinstance(version, str) else "", _described(info))
    variables = _Variables(node, info)
    found = [*_requests(node, origin, (), node.get("auth"))]
    addresses = [_address(one.node.get("url"), variables) for one in found]
    bases = Counter(address.base for address in addresses if address is not None and address.base)
    root = bases.most_common(1)[0][0] if bases else ""
    if root:
        draft.servers.append({"url": root})
    named: dict[str, set[tuple[str, str]]] = {}
    for one, address in zip(found, addresses, strict=True):
        named.setdefault(_operation_name(one.name), set()).add(
            (text(one.node, "method"), address.path if address else "")
        )
    draft.tags = dict(_folder_descriptions(node))
    for one, address in zip(found, addresses, strict=True):
        _add(draft, one, address, root, repeated=len(named[_operation_name(one.name)]) > 1)
    return draft.done(frozenset() if root else frozenset({"server-relative"}))


def _described(node: dict[str, Any]) -> str:
    return text(node, "description") or text(table(node, "description"), "content")


def _requests(node: dict[str, Any], origin: str, folders: tuple[str, ...], auth: Any) -> Iterator[_PostmanRequest]:
    for index, item in iterate_objects(node, "item"):
        at = f"{origin}/item/{index}"
        own = item.get("auth") or auth
        if isinstance(item.get("item"), list):
            yield from _requests(item, at, (*folders, text(item, "name")), own)
        elif "request" in item:
            request = item["request"]
            yield _PostmanRequest(
                item, at, folders, (request.get("auth") if isinstance(request, dict) else None) or own
            )


def _folder_descriptions(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for _, item in iterate_objects(node, "item"):
        if isinstance(item.get("item"), list):
            yield from _folder_descriptions(item)
            if description := _described(item):
                yield text(item, "name"), description


def _operation_name(written: str) -> str:
    return snake_case(with_whole_words(written))


def _add(draft: OpenApiDraft, one: _PostmanRequest, address: _Address | None, root: str, *, repeated: bool) -> None:
    method = text(one.node, "method").upper() or "GET"
    name = _operation_name(one.name)
    if repeated and one.folders:
        name = _operation_name(f"{one.folders[-1]} {one.name}")
    if address is None or not _METHOD.match(method):
        reason = "it has no URL" if address is None else "it has no usable method"
        draft.problems.add("operation-invalid", one.origin, f"the request {one.name[:100]!r}: {reason}; left out")
        draft.skip_operation(method, "", name, one.origin, reason)
        return
    operation: dict[str, Any] = {
        **without_empty(operationId=name),
        "summary": one.name,
        "description": _described(one.node) or _described(one.item),
        "tags": [folder for folder in one.folders[-1:] if folder],
        "parameters": [*_path_parameters(address), *_query(address), *_headers(one, address)],
        "responses": _responses(one.item),
        "security": _security(draft, one, address),
    }
    body = _body(one)
    if body is not None and method not in {"GET", "HEAD"}:
        operation["requestBody"] = {"content": body}
    if address.base and address.base != root:
        operation["servers"] = [{"url": address.base}]
    path, earlier = address.path, draft.paths.get(address.path, {}).get(method.lower())
    if earlier is not None and _body_shapes(operation) != _body_shapes(earlier):
        # a request with another body is another operation, and the server never sends the part after `#`
        path, earlier = f"{path}#{name}", None
    # the operation already exists, so that the parameters of this further example become optional
    if earlier is not None:
        known = {(each["in"], each["name"]) for each in earlier["parameters"]}
        more = [each for each in operation["parameters"] if (each["in"], each["name"]) not in known]
        earlier["parameters"] += [{**each, "required": False} for each in more]
    draft.add(method, path, operation, one.origin)


def _body_shapes(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of each media type of the body, without examples."""
    content = table(table(operation, "requestBody"), "content")
    return {kind: _shape(table(media, "schema")) for kind, media in content.items()}


def _shape(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in map_schema(schema, _shape).items() if key not in DATA}


def _path_parameters(address: _Address) -> Iterator[dict[str, Any]]:
    for name, known in address.parameters.items():
        about = without_empty(description=_described(known)) | plain_example(name, known.get("value"))
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, **about}


def _query(address: _Address) -> Iterator[dict[str, Any]]:
    counts = Counter(text(one, "key") for one in address.query)
    for name, count in counts.items():
        known = next(one for one in address.query if text(one, "key") == name)
        if not name or is_credential_parameter("query", name) or address.variables.is_credential(known.get("value")):
            continue
        kind: dict[str, Any] = {"type": "string"}
        value = _sent_value(known, address.variables)
        # An ID in a variable is only an example, like a literal ID in a path.
        if count == 1 and value and VARIABLE.search(text(known, "value")) and not is_data(value):
            kind["default"] = value
        about = without_empty(description=_described(known), required=_is_required(known))
        about |= plain_example(name, address.variables.filled(known.get("value"))) if count == 1 else {}
        yield {"name": name, "in": "query", "schema": {"type": "array", "items": kind} if count > 1 else kind, **about}


def _sent_value(node: dict[str, Any], variables: _Variables) -> str:
    """Return the text that a parameter sends; "" if the parameter is disabled, or if the text is secret or unknown."""
    value = variables.filled(node.get("value"))
    known = isinstance(value, str) and REDACTED not in value and VARIABLE.search(value) is None
    return value if known and node.get("disabled") is not True else ""


def _headers(one: _PostmanRequest, address: _Address) -> Iterator[dict[str, Any]]:
    for name, node in _written_headers(one).items():
        if name.lower() in _HEADERS or is_secret(name) or not re.fullmatch(r"[\w.-]+", name):
            continue
        if address.variables.is_credential(node.get("value")):
            continue
        value = _sent_value(node, address.variables)
        about = without_empty(description=_described(node), required=True if value else _is_required(node))
        yield {"name": name, "in": "header", "schema": {"type": "string", **without_empty(default=value)}, **about}


def _is_required(node: dict[str, Any]) -> bool | None:
    """Return True if the description starts with “required”, else None."""
    return True if _REQUIRED.match(_described(node)) else None


def _written_headers(one: _PostmanRequest) -> dict[str, dict[str, Any]]:
    written = one.node.get("header")
    if isinstance(written, str):
        pairs = (line.partition(":") for line in written.splitlines())
        return {name.strip(): {"value": value.strip()} for name, _, value in pairs if name.strip()}
    return {text(node, "key"): node for _, node in iterate_objects(one.node, "header") if text(node, "key")}


def _address(url: Any, variables: _Variables) -> _Address | None:
    raw = url if isinstance(url, str) else text(url, "raw") or _joined(url)
    raw = strip_userinfo(raw.strip().partition("#")[0])
    before, _, query = raw.partition("?")
    if not before:
        return None
    base, path = _split(before, variables)
    known = {text(one, "key") or text(one, "id"): one for _, one in iterate_objects(url, "variable")}
    parameters: dict[str, dict[str, Any]] = {}
    segments: list[str] = []
    for segment in path.split("/"):
        segments.append(_literal_id(segment, segments, parameters) or _segment(segment, variables, known, parameters))
    pairs = [one for _, one in iterate_objects(url, "query")]
    if not pairs:
        pairs = [{"key": key, "value": value} for key, value in parse_qsl(query, keep_blank_values=True)][:200]
    return _Address(base, "/" + "/".join(segments).lstrip("/"), parameters, pairs, variables)


def _joined(url: Any) -> str:
    host, path = (url.get(key) if isinstance(url, dict) else None for key in ("host", "path"))
    hosts = ".".join(map(str, host)) if isinstance(host, list) else host if isinstance(host, str) else ""
    paths = path if isinstance(path, list) else [path] if isinstance(path, str) else []
    named = [str(one.get("value", "")) if isinstance(one, dict) else str(one) for one in paths]
    scheme = f"{text(url, 'protocol')}://" if text(url, "protocol") else ""
    return "/".join([scheme + hosts, *(one.lstrip("/") for one in named)]) if hosts else ""


def _split(before: str, variables: dict[str, str]) -> tuple[str, str]:
    """Return the base URL and the path, with "" for a base URL that contains an unknown variable."""
    if (first := VARIABLE.match(before)) is not None:
        rest = before[first.end() :]
        value = _filled(variables.get(first[1], ""), variables).rstrip("/")
        if "://" in value and (rest.startswith("/") or not rest):
            return strip_userinfo(value), rest
        if value in {"", REDACTED} and (rest.startswith("/") or not rest):
            return "", rest
        before = value + rest
    before = _filled_host(before, variables)
    scheme, separator, rest = before.partition("://")
    if not separator:
        scheme, rest = "https", before
    host, _, path = rest.partition("/")
    usable = re.fullmatch(r"[\w.-]+(:\d{1,5})?", host) and scheme in {"http", "https"}
    return (f"{scheme}://{host}" if usable else ""), f"/{path}"


def _filled(value: str, variables: dict[str, str]) -> str:
    for _ in range(_HOPS):
        if not VARIABLE.search(value) or len(value) > 2_000:
            break
        value = VARIABLE.sub(lambda match: variables.get(match[1], match[1]), value)
    return value[:2_000]


def _filled_host(before: str, variables: dict[str, str]) -> str:
    head, separator, rest = before.partition("://")
    host, slash, path = (rest if separator else head).partition("/")
    host = _filled(host, variables)
    return f"{_filled(head, variables)}://{host}{slash}{path}" if separator else f"{host}{slash}{path}"


def _literal_id(segment: str, before: list[str], parameters: dict[str, dict[str, Any]]) -> str:
    """Return a parameter for a literal ID such as `42` in `/books/42`, or "" for any other segment."""
    noun = singular(snake_case(before[-1])) if before and not before[-1].startswith("{") else ""
    if not noun or noun in PATH_PREFIXES or not is_data(unquote(segment)):
        return ""
    name = f"{noun}_id" if f"{noun}_id" not in parameters else f"{noun}_id_{len(parameters)}"
    parameters[name] = {"value": unquote(segment)}
    return f"{{{name}}}"


def _segment(
    segment: str, variables: dict[str, str], known: dict[str, dict[str, Any]], parameters: dict[str, dict[str, Any]]
) -> str:
    """Return a path segment.

    `:id` and variables become parameters. A variable for a prefix is replaced by its value.
    """
    if (named := _SEGMENT.match(unquote(segment))) is not None:
        parameters[named[1]] = known.get(named[1], {})
        return f"{{{named[1]}}}"

    def put(match: re.Match[str]) -> str:
        name, value = match[1], variables.get(match[1], "")
        if value and _PREFIX.search(name):
            return _filled(value, variables).strip("/")
        plain = re.sub(r"[^\w.-]", "_", name)
        parameters[plain] = {"value": value}
        return f"{{{plain}}}"

    return VARIABLE.sub(put, segment)


# --- credentials ---


def _security(draft: OpenApiDraft, one: _PostmanRequest, address: _Address) -> list[dict[str, list[str]]]:
    schemes = [_scheme(one.auth)]
    for name, node in _written_headers(one).items():
        value = text(node, "value")
        secret = is_secret(name) or address.variables.is_credential(value)
        if name.lower() == "authorization":
            kind = value.partition(" ")[0].lower()
            schemes.append({"type": "http", "scheme": kind} if kind in {"bearer", "basic"} else _key("header", name))
        elif secret and name.lower() not in _HEADERS and re.fullmatch(r"[\w.-]+", name):
            schemes.append(_key("header", name))
    schemes += [
        _key("query", text(node, "key"))
        for node in address.query
        if is_credential_parameter("query", text(node, "key")) or address.variables.is_credential(node.get("value"))
    ]
    needs: dict[str, list[str]] = {_named(draft, scheme): [] for scheme in schemes if scheme is not None}
    return [needs] if needs else []


def _key(place: str, name: str) -> dict[str, Any]:
    return {"type": "apiKey", "in": place, "name": name}


def _named(draft: OpenApiDraft, scheme: dict[str, Any]) -> str:
    """Return the name of a scheme, and add an unknown scheme."""
    for name, known in draft.schemes.items():
        if known == scheme:
            return name
    stem = snake_case(str(scheme.get("name") or scheme.get("scheme") or scheme["type"])) or "auth"
    name, number = stem, 2
    while name in draft.schemes:
        name, number = f"{stem}_{number}", number + 1
    draft.schemes[name] = scheme
    return name


def _scheme(auth: Any) -> dict[str, Any] | None:
    kind = text(auth, "type").lower()
    # Postman 2.1 uses a list of keys and values, and Postman 2.0 uses an object
    listed = {text(one, "key"): one.get("value") for _, one in iterate_objects(auth, kind)} or table(auth, kind)
    settings = {key: value for key, value in listed.items() if isinstance(value, str)}
    if kind == "apikey":
        place = settings.get("in") if settings.get("in") in {"query", "header"} else "header"
        name = settings.get("key", "")
        return _key(str(place), name if re.fullmatch(r"[\w.-]{1,100}", name) else "X-Api-Key")
    if kind in {"basic", "bearer"}:
        return {"type": "http", "scheme": kind}
    if kind == "oauth2":
        return _oauth(settings)
    if kind == "awsv4":
        return {**_key("header", "Authorization"), "x-amazon-apigateway-authtype": "awsSigv4"}
    return {"type": "http", "scheme": kind} if kind and kind != "noauth" else None


def _oauth(settings: dict[str, str]) -> dict[str, Any]:
    token, authorize = settings.get("accessTokenUrl", ""), settings.get("authUrl", "")
    if not token.startswith(("http://", "https://")) or VARIABLE.search(token + authorize):
        return {"type": "http", "scheme": "bearer"}
    scope = settings.get("scope", "")
    scopes = dict.fromkeys([] if VARIABLE.search(scope) else scope.split(), "")
    if settings.get("grant_type") == "client_credentials":
        return {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": token, "scopes": scopes}}}
    if authorize.startswith(("http://", "https://")):
        flow = {"tokenUrl": token, "authorizationUrl": authorize, "scopes": scopes}
        return {"type": "oauth2", "flows": {"authorizationCode": flow}}
    return {"type": "http", "scheme": "bearer"}


def _body(one: _PostmanRequest) -> dict[str, Any] | None:
    body = table(one.node, "body")
    mode = text(body, "mode")
    if body.get("disabled") is True:
        return None
    if mode == "raw":
        return _raw(one, text(body, "raw"), text(table(table(body, "options"), "raw"), "language"))
    if mode in {"urlencoded", "formdata"}:
        kind = "application/x-www-form-urlencoded" if mode == "urlencoded" else "multipart/form-data"
        return {kind: {"schema": _form([node for _, node in iterate_objects(body, mode)])}}
    if mode == "file":
        return {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    if mode == "graphql":
        query = text(table(body, "graphql"), "query")
        named = {"query": {"type": "string", "default": query}, "variables": {"type": "object"}}
        return {"application/json": {"schema": {"type": "object", "properties": named, "required": ["query"]}}}
    return None


def _raw(one: _PostmanRequest, raw: str, language: str) -> dict[str, Any] | None:
    if not raw.strip():
        return None
    headers = {name.lower(): text(node, "value") for name, node in _written_headers(one).items()}
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    value = _json(raw)
    if value is not None and (not kind or "json" in kind or language == "json"):
        kind = kind if "json" in kind else "application/json"
        return {kind: {"schema": schema_of_example(value), "example": _without_secrets(value)}}
    kind = kind if re.fullmatch(r"[\w.+-]+/[\w.+-]+", kind) and "json" not in kind else _RAW.get(language, "text/plain")
    return {kind: {"schema": {"type": "string"}}}


def _json(raw: str) -> Any:
    for written in (raw, _LONE.sub(lambda match: json.dumps(match[1]), raw)):
        if (value := parse_json_or_none(written)) is not None:
            return value
    return None


def _without_secrets(value: Any, depth: int = 0) -> Any:
    if isinstance(value, dict) and depth < _HOPS:
        return {name: _without_secrets(one, depth + 1) for name, one in value.items() if not is_secret(name)}
    if isinstance(value, list) and depth < _HOPS:
        return [_without_secrets(one, depth + 1) for one in value[:_HOPS]]
    return redacted(value) if isinstance(value, str) else value


def _form(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required = []
    for node in nodes:
        name = text(node, "key")
        if not name:
            continue
        schema: dict[str, Any] = {"type": "string"}
        if text(node, "type") == "file":
            schema = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
        examples = list(plain_example(name, node.get("value")).values())
        schema |= without_empty(description=_described(node), examples=examples)
        properties[name] = {"type": "array", "items": schema} if name in properties else schema
        required += [name] if _is_required(node) else []
    return {"type": "object", "properties": properties, **without_empty(required=required)}


def _responses(item: dict[str, Any]) -> dict[str, Any]:
    samples: dict[str, list[Any]] = {}
    found: dict[str, Any] = {}
    for _, one in iterate_objects(item, "response"):
        code = one.get("code")
        if isinstance(code, int) and 200 <= code < 600:
            status, value = str(code), _json(text(one, "body"))
            found.setdefault(status, {"description": text(one, "name") or text(one, "status") or status})
            samples.setdefault(status, []).extend([value] if isinstance(value, dict | list) else [])
    for status, values in samples.items():
        if values:
            found[status]["content"] = {"application/json": {"schema": infer_schema(values, answer=True)}}
    return found or {"200": {"description": "The answer"}}
