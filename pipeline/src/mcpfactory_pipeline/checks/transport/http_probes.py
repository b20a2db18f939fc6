"""HTTP probes outside a conversation: statuses, headers, sessions, foreign origins."""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.checks.evidence import Era, EventStream, ProbeAnswer
from mcpfactory_pipeline.checks.exchange import (
    BATCHED,
    CAPABILITIES,
    LATEST_HANDSHAKE,
    STRUCTURED,
    VERSION,
    initialize_params,
    modern_meta,
)
from mcpfactory_pipeline.checks.probes import LATER_REVISION, UNKNOWN_REVISION
from mcpfactory_pipeline.checks.transport.conversation import decode
from mcpfactory_pipeline.checks.transport.http import connected
from mcpfactory_runtime.types import Json

FOREIGN_ORIGIN: Final = "https://mcpfactory-foreign-origin.example"
# What a browser sends for a page whose name leads, since it was loaded, to the server's address: DNS rebinding.
_REBOUND: Final = {"Origin": FOREIGN_ORIGIN, "Host": FOREIGN_ORIGIN.removeprefix("https://")}
FOREIGN_HOST: Final = "mcpfactory-foreign-host.example"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_MOST: Final = 1_000_000  # bytes of a body that are read
_EACH: Final = 5.0  # seconds for one answer, from its first byte to the last that is read
_MOST_UNANSWERED: Final = 3  # questions; a server that is silent has nothing to say to the others
LINGER: Final = 2.0  # seconds in which a stream has to end after its answer
_SLOWER: Final = 10  # times as long as the answer took, where that is more
_WATCHED: Final = frozenset({"begin", "modern"})  # probes of which the end of the stream is waited for
_ACCEPT: Final = {"Accept": "application/json, text/event-stream"}
_PING: Final[Json] = {"jsonrpc": "2.0", "id": "mcpfactory-http", "method": "ping"}


def probe_http(url: str, spoken: Collection[Era], modern: str) -> dict[str, ProbeAnswer]:
    """Ask in each lifecycle that the server speaks; what gets no answer is left out. Blocks for some seconds at most.

    Args:
        url: of the endpoint, as conversations found it.
        spoken: the lifecycles of the server.
        modern: its per-request revision.
    """
    asked = _Asker(url)
    if "legacy" in spoken:
        asked.run(_legacy(asked))
    if "modern" in spoken:
        asked.run(_modern(modern))
    return asked.answers


_Step = tuple[str, str, Mapping[str, str], Any]  # name, HTTP method, headers, body


def _legacy(asked: _Asker) -> Iterator[_Step]:
    """A session from its beginning to its end. Steps that need what an earlier one brought are left out without it."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params()}
    yield "begin", "POST", {}, hello
    begun = asked.answers.get("begin")
    if begun is None:
        return
    result = begun.message.get("result")
    agreed = str(result.get("protocolVersion", "")) if isinstance(result, dict) else ""
    session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]} if "mcp-session-id" in begun.headers else {}
    known = {**session, "MCP-Protocol-Version": agreed}
    yield "notify", "POST", known, {"jsonrpc": "2.0", "method": "notifications/initialized"}
    yield "respond", "POST", known, {"jsonrpc": "2.0", "id": "mcpfactory-never-asked", "result": {}}
    yield "origin", "POST", {**known, "Origin": FOREIGN_ORIGIN}, _PING
    yield "rebound", "POST", {**known, **_REBOUND}, _PING
    if asked.loopback:
        yield "host", "POST", {**known, "Host": FOREIGN_HOST}, _PING
    yield "get", "GET", {**known, "Accept": "text/event-stream"}, None
    if agreed > max(BATCHED):
        yield "version", "POST", {**session, "MCP-Protocol-Version": UNKNOWN_REVISION}, _PING
        yield "no-version", "POST", session, _PING
        yield "array", "POST", known, [_PING, {**_PING, "id": "mcpfactory-http-2"}]
    if session:
        yield "no-session", "POST", {"MCP-Protocol-Version": agreed}, _PING
        yield "unknown-session", "POST", {**known, "Mcp-Session-Id": "mcpfactory-no-such-session"}, _PING
        yield "delete", "DELETE", known, None
        if asked.answers["delete"].status < 300 if "delete" in asked.answers else False:
            yield "after-delete", "POST", known, _PING
    if begun.stream is not None and begun.stream.ids:
        yield from _older(asked)


def _older(asked: _Asker) -> Iterator[_Step]:
    """A session of a revision whose clients do not expect what streams of the newest begin with."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params(STRUCTURED)}
    yield "begin-older", "POST", {}, hello
    begun = asked.answers.get("begin-older")
    if begun is not None and "mcp-session-id" in begun.headers:
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        yield "delete-older", "DELETE", {**session, "MCP-Protocol-Version": STRUCTURED}, None


def _modern(version: str) -> Iterator[_Step]:
    """Requests by themselves; each is right but for one thing."""
    meta = modern_meta(version)

    def request(method: str, *, named: str = "", about: Json = meta) -> Json:
        params = {"_meta": about, **({"name": named, "arguments": {}} if named else {})}
        return {"jsonrpc": "2.0", "id": "mcpfactory-http", "method": method, "params": params}

    plain = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/list"}
    listing, unknown = request("tools/list"), {**meta, VERSION: LATER_REVISION}
    yield "modern", "POST", {**plain, "Mcp-Session-Id": "mcpfactory-no-such-session"}, listing
    yield "modern-origin", "POST", {**plain, "Origin": FOREIGN_ORIGIN}, listing
    yield "modern-rebound", "POST", {**plain, **_REBOUND}, listing
    yield "modern-no-version", "POST", {"Mcp-Method": "tools/list"}, listing
    yield "modern-other-version", "POST", {**plain, "MCP-Protocol-Version": LATEST_HANDSHAKE}, listing
    yield "modern-no-method", "POST", {"MCP-Protocol-Version": version}, listing
    yield "modern-other-method", "POST", {**plain, "Mcp-Method": "prompts/list"}, listing
    calling = {**plain, "Mcp-Method": "tools/call", "Mcp-Name": "mcpfactory_other"}
    yield "modern-other-name", "POST", calling, request("tools/call", named="mcpfactory_nothing")
    unheard = {**plain, "Mcp-Method": "mcpfactory/nothing"}
    yield "modern-unknown-method", "POST", unheard, request("mcpfactory/nothing")
    unspoken = {**plain, "MCP-Protocol-Version": LATER_REVISION}
    yield "modern-unknown-version", "POST", unspoken, request("tools/list", about=unknown)
    bare = {key: value for key, value in meta.items() if key != CAPABILITIES}
    yield "modern-no-capabilities", "POST", plain, request("tools/list", about=bare)
    yield "modern-get", "GET", {"MCP-Protocol-Version": version, "Accept": "text/event-stream"}, None
    yield from _modern_bodies(plain, listing)
    yield from _modern_headers(plain, listing, request)


def _modern_bodies(plain: Mapping[str, str], listing: Json) -> Iterator[_Step]:
    told = {
        "jsonrpc": "2.0",
        "method": "notifications/mcpfactory/nothing",
        "params": {"_meta": listing["params"]["_meta"]},
    }
    yield "modern-array", "POST", plain, [listing, {**listing, "id": "mcpfactory-http-2"}]
    yield "modern-response", "POST", plain, {"jsonrpc": "2.0", "id": "mcpfactory-never-asked", "result": {}}
    yield "modern-notification", "POST", {**plain, "Mcp-Method": "notifications/mcpfactory/nothing"}, told
    yield "modern-last-event", "POST", {**plain, "Last-Event-ID": "mcpfactory-1"}, listing


def _modern_headers(plain: Mapping[str, str], listing: Json, request: Callable[..., Json]) -> Iterator[_Step]:
    """Return requests with unusual headers: upper case, padded with spaces, with complete or incomplete base64 markers."""
    yield "modern-upper-names", "POST", {name.upper(): value for name, value in plain.items()}, listing
    yield "modern-upper-value", "POST", {**plain, "Mcp-Method": "TOOLS/LIST"}, listing
    yield "modern-blanks", "POST", {name: f" {value} \t" for name, value in plain.items()}, listing
    for probe, header, name in _ENCODED:
        headers = {**plain, "Mcp-Method": "tools/call", "Mcp-Name": header}
        yield probe, "POST", headers, request("tools/call", named=name)


# Probe, header, and name in the body. Header and name match except in the first, whose header is invalid base64.
_ENCODED: Final[tuple[tuple[str, str, str], ...]] = (
    ("modern-bad-base64", "=?base64?mcpfactory!?=", "mcpfactory_nothing"),
    ("modern-one-marker", "=?base64?bWNwZmFjdG9yeQ==", "=?base64?bWNwZmFjdG9yeQ=="),
    ("modern-encoded", f"=?base64?{base64.b64encode('mcpfactory_nöthing'.encode()).decode()}?=", "mcpfactory_nöthing"),
)


class _Asker:
    def __init__(self, url: str) -> None:
        self.answers: dict[str, ProbeAnswer] = {}
        self._unanswered = 0
        self._url = urlsplit(url)

    @property
    def loopback(self) -> bool:
        return self._url.hostname in _LOOPBACK

    def run(self, steps: Iterator[_Step]) -> None:
        """Take the steps one after the other; a later one may look at the answers of earlier ones."""
        for probe, method, headers, body in steps:
            if self._unanswered == _MOST_UNANSWERED:
                return
            try:
                self.answers[probe] = self._ask(method, {**_ACCEPT, **headers}, body, linger=probe in _WATCHED)
            except (OSError, http.client.HTTPException):
                self._unanswered += 1

    def _ask(self, method: str, headers: Mapping[str, str], body: Any, *, linger: bool) -> ProbeAnswer:
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        data = None if body is None else json.dumps(body).encode()
        sent = {**headers, **({"Content-Type": "application/json"} if data is not None else {})}
        with connected(self._url, _EACH) as connection:
            sock = connection.sock  # taken here because the connection forgets it where the server will close
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            stream: EventStream | None = None
            if not found.get("content-type", "").startswith("text/event-stream"):
                text = _body(response)
            elif method == "GET":
                text = b""
            else:
                text, stream = _events(response, wait=sock.settimeout if linger else None)
        value = decode(text)
        message = value if isinstance(value, dict) else {}
        return ProbeAnswer(method, sent, body, response.status, found, message, bool(text.strip()), stream)


def _body(response: http.client.HTTPResponse) -> bytes:
    text = b""
    while len(text) < _MOST and (piece := response.read1(_MOST)):
        text += piece
    return text


def _events(
    response: http.client.HTTPResponse, wait: Callable[[float], None] | None = None
) -> tuple[bytes, EventStream]:
    """Return the first answer in an event stream, if it comes in time, and the state of the stream up to it.

    The events before it are progress and log messages. With `wait`, a function that sets the read timeout, also wait
    for the end of the stream.
    """
    began, read, rest, lines = time.monotonic(), 0, b"", list[bytes]()
    answer = b""
    while read < _MOST and (piece := response.read1(_MOST)):
        read += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        lines += whole
        if answer := next(filter(_is_answer, whole), b""):
            break
    else:
        lines += [rest]
        answer = rest if _is_answer(rest) else b""
    ended = None
    if answer and wait is not None:
        ended = _ends(response, wait, max(LINGER, _SLOWER * (time.monotonic() - began)))
    ids = any(line.startswith(b"id:") for line in lines)
    return answer[5:], EventStream(ids, ids and _is_primed(lines), ended)


def _ends(response: http.client.HTTPResponse, wait: Callable[[float], None], seconds: float) -> bool:
    """Return True if a stream ends within `seconds`; comments and events do not extend the limit."""
    until = time.monotonic() + seconds
    try:
        while (left := until - time.monotonic()) > 0:
            wait(left)
            if not response.read1(_MOST):
                return True
    except TimeoutError:
        return False
    except (OSError, http.client.HTTPException):
        return True  # a reset also ends it
    return False


def _is_primed(lines: list[bytes]) -> bool:
    first: list[bytes] = []
    for line in (one.rstrip(b"\r") for one in lines):
        if not line and first:
            break
        if line and not line.startswith(b":"):
            first.append(line)
    data = b"".join(line[5:] for line in first if line.startswith(b"data:"))
    return any(line.startswith(b"id:") for line in first) and not data.strip()


def _is_answer(line: bytes) -> bool:
    return line.startswith(b"data:") and (b'"result"' in line or b'"error"' in line)
