"""Recordings of HTTP traffic (HAR 1.2): what was asked of an API becomes operations, grouped by method and path.

A browser records everything: only requests with JSON or forms count, of the host that was asked most; files, pages and
analytics are left out. Segments of paths that differ between requests, and look like ids, become parameters. A recording is full of
credentials: `redaction` takes them out before anything else is done with it, so that none gets into a server.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from mcpfactory_codegen.credentials.names import is_credential, is_secret
from mcpfactory_codegen.inputs import FORMS
from mcpfactory_codegen.ir import essence, is_json
from mcpfactory_codegen.sources.inference import infer
from mcpfactory_codegen.sources.secrets import REDACTED
from mcpfactory_codegen.sources.translation import Draft, Translation, entries, json_value, table, text
from mcpfactory_codegen.text import singular, snake

__all__ = ["is_har", "translate_har"]

_ID: Final = re.compile(
    r"\d+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9a-fA-F]{16,}|(?=[\w-]*\d)[\w-]{20,}|[\w.+-]+@[\w.-]+|\d{4}-\d{2}-\d{2}.*"
    r"|[A-Za-z]{1,10}[_-](?=[\w-]*\d)[\w-]{6,}"
)
_VERSION: Final = re.compile(r"v?\d+(\.\d+)*", re.IGNORECASE)
_FILE: Final = re.compile(
    r"\.(js|mjs|css|map|png|jpe?g|gif|svg|ico|webp|avif|woff2?|ttf|otf|eot|mp4|webm|mp3|html?|txt|pdf|wasm|webmanifest)\Z",
    re.IGNORECASE,
)
_ANALYTICS: Final = re.compile(
    r"(^|\.)(google-analytics|googletagmanager|doubleclick|segment|mixpanel|amplitude|sentry|hotjar|fullstory|datadoghq|newrelic|nr-data|bugsnag"
    r"|intercom|facebook|clarity|optimizely|launchdarkly|heap|posthog|plausible|matomo|cookielaw|onetrust|branch|appsflyer)\.(com|io|net|ms|org|ai)\Z",
    re.IGNORECASE,
)
_METHOD: Final = re.compile(r"[A-Z]{3,10}\Z")
_HEADER: Final = re.compile(r"[A-Za-z][\w-]{0,80}\Z")
_OF_BROWSERS: Final = re.compile(
    r"accept|accept-.*|access-control-.*|authority|cache-control|connection|content-.*|cookie|device-memory|dnt|downlink|dpr|ect|expect|forwarded|host|if-.*"
    r"|keep-alive|origin|pragma|priority|proxy-.*|range|referer|referrer.*|rtt|save-data|sec-.*|te|tracestate|traceparent|trailer|transfer-encoding"
    r"|upgrade.*|user-agent|via|viewport-width|width|x-forwarded-.*|x-requested-with|x-.*-id|:.*",
    re.IGNORECASE,
)
_SAMPLES: Final = 30
_SEGMENTS: Final = 40
_SHOWN: Final = 30
_SIBLINGS: Final = 2


def is_har(data: dict[str, Any]) -> bool:
    """Whether the data is a recording."""
    return isinstance(table(data, "log").get("entries"), list)


# --- requests ---


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A request that counts, and where it stands."""

    index: int
    node: dict[str, Any]
    method: str
    host: str
    segments: tuple[str, ...]

    @property
    def request(self) -> dict[str, Any]:
        return table(self.node, "request")

    @property
    def origin(self) -> str:
        return f"/log/entries/{self.index}"


def translate_har(data: dict[str, Any]) -> Translation:
    """Return a recording as OpenAPI."""
    recorded, left = _recorded(table(data, "log"))
    hosts = Counter(one.host for one in recorded)
    root = hosts.most_common(1)[0][0] if hosts else ""
    name = urlsplit(root).hostname or "recorded"
    draft = Draft(f"API of {name}")
    draft.origins["/info"] = "/log"
    if root:
        draft.servers.append({"url": root})
    for (method, path, reason), index in left.items():
        if len(draft.skipped) < 2_000:
            draft.leave_out(method, path, "", f"/log/entries/{index}", reason)
    grouped: dict[tuple[str, str, str], list[_Recorded]] = defaultdict(list)
    for host in hosts:
        for one, path in _templated([one for one in recorded if one.host == host]):
            grouped[host, path, one.method].append(one)
    for (host, path, method), group in grouped.items():
        _add(draft, group, method, path, server="" if host == root else host)
    if recorded:
        message = "cookies, and values under the names of credentials, are taken out of the copy of the recording"
        draft.problems.add("har-redacted", "/log", message, "the recording itself has them still: keep it to yourself")
    return draft.done()


def _recorded(log: dict[str, Any]) -> tuple[list[_Recorded], dict[tuple[str, str, str], int]]:
    """Return the requests that count, and the others with the reason."""
    found: list[_Recorded] = []
    left: dict[tuple[str, str, str], int] = {}
    for index, node in entries(log, "entries"):
        method, url = text(table(node, "request"), "method").upper(), text(table(node, "request"), "url")
        try:
            parts = urlsplit(url)
            host = f"{parts.scheme}://{parts.netloc}" if parts.hostname and parts.port != 0 else ""
        except ValueError:
            host, parts = "", urlsplit("")
        reason = _unusable(node, method, host, parts.path)
        if reason:
            left.setdefault((method[:20], f"{parts.hostname or ''}{parts.path}"[:200], reason), index)
        else:
            segments = tuple(segment for segment in parts.path.split("/") if segment)
            found.append(_Recorded(index, node, method, host, segments))
    return found, left


def _unusable(node: dict[str, Any], method: str, host: str, path: str) -> str:
    """Return why a request is left out; "" when it counts."""
    request, response = table(node, "request"), table(node, "response")
    if not host.startswith(("http://", "https://")) or not _METHOD.match(method):
        return "it is no HTTP request"
    if path.count("/") > _SEGMENTS:
        return f"its path has more than {_SEGMENTS} segments"
    if method in {"OPTIONS", "CONNECT"}:
        return "browsers send it for themselves"
    if _ANALYTICS.search(host.partition("://")[2].partition(":")[0]):
        return "it reports to a service of analytics"
    if _FILE.search(path):
        return "it is a file"
    kind = essence(text(table(response, "content"), "mimeType"))
    sent = essence(text(table(request, "postData"), "mimeType"))
    if is_json(kind) or is_json(sent) or (sent in FORMS and not kind.startswith("text/html")):
        return ""
    if not kind and not sent and method in {"PUT", "PATCH", "DELETE", "POST"}:
        return ""
    return f"neither what was sent nor the answer is JSON or a form ({kind or sent or 'nothing'})"


# --- paths ---


def _templated(recorded: Sequence[_Recorded]) -> Iterator[tuple[_Recorded, str]]:
    """Yield the requests of one host with their path templates: what looks like an id is a parameter, and so is what siblings differ in."""
    seen: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for one in recorded:
        for at, segment in enumerate(one.segments):
            seen[_shape(one.segments[:at])].add(unquote(segment))
    for one in recorded:
        parts: list[str] = []
        names: Counter[str] = Counter()
        for at, segment in enumerate(one.segments):
            siblings = seen[_shape(one.segments[:at])]
            if _is_parameter(segment, at, siblings):
                stem = _named(one.segments[at - 1] if at else "")
                names[stem] += 1
                parts.append(f"{{{stem}{names[stem] if names[stem] > 1 else ''}}}")
            else:
                parts.append(segment.replace("{", "%7B").replace("}", "%7D"))
        yield one, "/" + "/".join(parts)


def _shape(segments: Sequence[str]) -> tuple[str, ...]:
    """Return the way to a segment, in which ids are alike."""
    return tuple("{}" if at and _ID.fullmatch(unquote(segment)) else segment for at, segment in enumerate(segments))


def _is_parameter(segment: str, at: int, siblings: set[str]) -> bool:
    plain = unquote(segment)
    if plain == REDACTED:
        return True
    if at == 0 or not _ID.fullmatch(plain):
        return False
    return (
        not _VERSION.fullmatch(plain)
        or at > 1
        or len([one for one in siblings if _ID.fullmatch(one)]) >= _SIBLINGS
        or plain.isdecimal()
    )


def _named(before: str) -> str:
    stem = snake(unquote(before))
    return f"{singular(stem)}_id" if stem and not stem[0].isdigit() else "id"


# --- operations ---


def _add(draft: Draft, group: list[_Recorded], method: str, path: str, *, server: str) -> None:
    group = group[:_SAMPLES]
    origin = group[0].origin
    words = [part for part in path.split("/") if part and not part.startswith("{") and not _VERSION.fullmatch(part)]
    tags = [words[1] if len(words) > 1 and words[0] in {"api", "rest"} else words[0]] if words else []
    operation: dict[str, Any] = {
        "tags": tags,
        "parameters": [*_path_parameters(path, group), *_query(group), *_headers(group)],
        "responses": _responses(group),
        "security": _security(draft, group),
    }
    if (body := _request_body(group)) is not None and method not in {"GET", "HEAD"}:
        operation["requestBody"] = body
    if server:
        operation["servers"] = [{"url": server}]
    draft.add(method, path, operation, origin)


def _path_parameters(path: str, group: list[_Recorded]) -> Iterator[dict[str, Any]]:
    for at, part in enumerate(path.split("/")[1:]):
        if part.startswith("{"):
            value = unquote(group[0].segments[at])
            shown = {} if value == REDACTED or len(value) > _SHOWN else {"example": value}
            yield {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string"}, **shown}


def _query(group: list[_Recorded]) -> Iterator[dict[str, Any]]:
    requests = [parse_qsl(urlsplit(text(one.request, "url")).query, keep_blank_values=True)[:200] for one in group]
    names = dict.fromkeys(name for pairs in requests for name, _ in pairs)
    for name in names:
        if not name or is_credential("query", name):
            continue
        values = [value for pairs in requests for key, value in pairs if key == name]
        several = any(sum(key == name for key, _ in pairs) > 1 for pairs in requests)
        schema = _scalar(values)
        shown = (
            {}
            if is_secret(name) or several or len(values[0]) > _SHOWN or not values[0]
            else {"example": _value(values[0], schema)}
        )
        always = len(group) >= _SIBLINGS and all(name in dict(pairs) for pairs in requests)
        yield {
            "name": name,
            "in": "query",
            "schema": {"type": "array", "items": schema} if several else schema,
            **({"required": True} if always and _never_empty(values) and len(set(values)) > 1 else {}),
            **shown,
        }


def _never_empty(values: list[str]) -> bool:
    return all(values)


def _scalar(values: list[str]) -> dict[str, Any]:
    if values and all(value in {"true", "false"} for value in values):
        return {"type": "boolean"}
    if values and all(re.fullmatch(r"-?(0|[1-9]\d{0,8})", value) for value in values):
        return {"type": "integer"}
    return {"type": "string"}


def _value(written: str, schema: dict[str, Any]) -> Any:
    return written if schema["type"] == "string" else json.loads(written)


def _headers(group: list[_Recorded]) -> Iterator[dict[str, Any]]:
    """Yield the headers that are the API's own, with the value that all requests have."""
    found: dict[str, list[str]] = defaultdict(list)
    spelled: dict[str, str] = {}
    for one in group:
        for _, header in entries(one.request, "headers"):
            name = text(header, "name")
            if _HEADER.match(name) and not _OF_BROWSERS.fullmatch(name) and not is_secret(name):
                found[name.lower()].append(text(header, "value"))
                spelled.setdefault(name.lower(), name)
    for name, values in found.items():
        same = (
            len(set(values)) == 1
            and len(values) == len(group)
            and 0 < len(values[0]) <= _SHOWN
            and REDACTED not in values[0]
        )
        schema: dict[str, Any] = {"type": "string", **({"default": values[0]} if same else {})}
        yield {"name": spelled[name], "in": "header", "schema": schema}


def _security(draft: Draft, group: list[_Recorded]) -> list[dict[str, list[str]]]:
    needed: dict[str, list[str]] = {}
    for one in group:
        for _, header in entries(one.request, "headers"):
            name = text(header, "name")
            if name.lower() == "authorization":
                needed[_scheme(draft, "bearer", {"type": "http", "scheme": "bearer"})] = []
            elif _HEADER.match(name) and is_secret(name) and not _OF_BROWSERS.fullmatch(name):
                needed[_scheme(draft, name, {"type": "apiKey", "in": "header", "name": name})] = []
        for name, _ in parse_qsl(urlsplit(text(one.request, "url")).query, keep_blank_values=True)[:200]:
            if is_credential("query", name):
                needed[_scheme(draft, name, {"type": "apiKey", "in": "query", "name": name})] = []
    return [needed] if needed else []


def _scheme(draft: Draft, name: str, scheme: dict[str, Any]) -> str:
    stem = snake(name) or "key"
    key = stem if draft.schemes.get(stem, scheme) == scheme else f"{stem}_{scheme.get('in', 'header')}"
    draft.schemes[key] = scheme
    return key


# --- bodies ---


def _request_body(group: list[_Recorded]) -> dict[str, Any] | None:
    posted = [table(one.request, "postData") for one in group if table(one.request, "postData")]
    if not posted:
        return None
    kind = Counter(essence(text(one, "mimeType")) for one in posted).most_common(1)[0][0]
    same = [one for one in posted if essence(text(one, "mimeType")) == kind]
    if is_json(kind):
        samples = [value for one in same if (value := json_value(text(one, "text"))) is not None]
        schema = infer(samples)
    elif kind in FORMS:
        schema = _form(same)
    else:
        return None
    return {"required": len(posted) == len(group), "content": {kind: {"schema": schema}}}


def _form(posted: list[dict[str, Any]]) -> dict[str, Any]:
    values: dict[str, list[str]] = defaultdict(list)
    files: set[str] = set()
    for one in posted:
        for _, given in entries(one, "params"):
            values[text(given, "name")].append(text(given, "value"))
            files |= {text(given, "name")} if text(given, "fileName") else set()
    file = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
    properties = {name: dict(file) if name in files else _scalar(given) for name, given in values.items() if name}
    return {"type": "object", "properties": properties}


def _responses(group: list[_Recorded]) -> dict[str, Any]:
    samples: dict[str, list[Any]] = defaultdict(list)
    for one in group:
        response = table(one.node, "response")
        status = response.get("status")
        if isinstance(status, int) and 200 <= status < 600 and status != 304:
            value = json_value(text(table(response, "content"), "text"))
            samples[str(status)] += [value] if value is not None else []
    found: dict[str, Any] = {}
    for status, values in samples.items():
        found[status] = {"description": "As recorded"}
        if values:
            found[status]["content"] = {"application/json": {"schema": infer(values, answer=True)}}
    return found or {"200": {"description": "The answer"}}
