"""What is asked of a server at a URL that a conversation does not show: statuses, headers, sessions, foreign origins."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.checks import eras
from mcpfactory_pipeline.checks.evidence import Era, HttpProbe, ProbeAnswer
from mcpfactory_pipeline.checks.exchange import Json
from mcpfactory_pipeline.checks.questions import UNKNOWN_REVISION
from mcpfactory_pipeline.checks.wire.conversation import decode
from mcpfactory_pipeline.checks.wire.http import connected

__all__ = ["probe_http"]

FOREIGN_ORIGIN: Final = "https://mcpfactory-foreign-origin.example"
# What a browser sends for a page whose name leads, since it was loaded, to the server's address: DNS rebinding.
_REBOUND: Final = {"Origin": FOREIGN_ORIGIN, "Host": FOREIGN_ORIGIN.removeprefix("https://")}
_MOST: Final = 1_000_000  # bytes of a body that are read
_EACH: Final = 5.0  # seconds for one answer, from its first byte to the last that is read
_MOST_UNANSWERED: Final = 3  # questions; a server that is silent has nothing to say to the others
_ACCEPT: Final = {"Accept": "application/json, text/event-stream"}
_PING: Final[Json] = {"jsonrpc": "2.0", "id": "mcpfactory-http", "method": "ping"}


def probe_http(url: str, spoken: frozenset[Era], modern: str) -> dict[HttpProbe, ProbeAnswer]:
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


_Step = tuple[HttpProbe, str, Mapping[str, str], Any]  # name, HTTP method, headers, body


def _legacy(asked: _Asker) -> Iterator[_Step]:
    """A session from its beginning to its end. Steps that need what an earlier one brought are left out without it."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": eras.initialize_params()}
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
    yield "get", "GET", {**known, "Accept": "text/event-stream"}, None
    if agreed > max(eras.BATCHES):
        yield "version", "POST", {**session, "MCP-Protocol-Version": UNKNOWN_REVISION}, _PING
        yield "array", "POST", known, [_PING, {**_PING, "id": "mcpfactory-http-2"}]
    if session:
        yield "no-session", "POST", {"MCP-Protocol-Version": agreed}, _PING
        yield "unknown-session", "POST", {**known, "Mcp-Session-Id": "mcpfactory-no-such-session"}, _PING
        yield "delete", "DELETE", known, None
        if asked.answers["delete"].status < 300 if "delete" in asked.answers else False:
            yield "after-delete", "POST", known, _PING


def _modern(version: str) -> Iterator[_Step]:
    """Requests by themselves; each is right but for one thing."""
    meta = eras.modern_meta(version)

    def request(method: str, *, named: str = "", about: Json = meta) -> Json:
        params = {"_meta": about, **({"name": named, "arguments": {}} if named else {})}
        return {"jsonrpc": "2.0", "id": "mcpfactory-http", "method": method, "params": params}

    plain = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/list"}
    listing, unknown = request("tools/list"), {**meta, eras.VERSION: UNKNOWN_REVISION}
    yield "modern", "POST", {**plain, "Mcp-Session-Id": "mcpfactory-no-such-session"}, listing
    yield "modern-origin", "POST", {**plain, "Origin": FOREIGN_ORIGIN}, listing
    yield "modern-rebound", "POST", {**plain, **_REBOUND}, listing
    yield "modern-no-version", "POST", {"Mcp-Method": "tools/list"}, listing
    yield "modern-other-version", "POST", {**plain, "MCP-Protocol-Version": eras.LATEST_HANDSHAKE}, listing
    yield "modern-no-method", "POST", {"MCP-Protocol-Version": version}, listing
    yield "modern-other-method", "POST", {**plain, "Mcp-Method": "prompts/list"}, listing
    calling = {**plain, "Mcp-Method": "tools/call", "Mcp-Name": "mcpfactory_other"}
    yield "modern-other-name", "POST", calling, request("tools/call", named="mcpfactory_nothing")
    unheard = {**plain, "Mcp-Method": "mcpfactory/nothing"}
    yield "modern-unknown-method", "POST", unheard, request("mcpfactory/nothing")
    unspoken = {**plain, "MCP-Protocol-Version": UNKNOWN_REVISION}
    yield "modern-unknown-version", "POST", unspoken, request("tools/list", about=unknown)
    bare = {key: value for key, value in meta.items() if key != eras.CAPABILITIES}
    yield "modern-no-capabilities", "POST", plain, request("tools/list", about=bare)
    yield "modern-get", "GET", {"MCP-Protocol-Version": version, "Accept": "text/event-stream"}, None


class _Asker:
    """Sends requests that are right but for one thing, each over a connection of its own."""

    def __init__(self, url: str) -> None:
        self.answers: dict[HttpProbe, ProbeAnswer] = {}
        self._unanswered = 0
        self._url = urlsplit(url)

    def run(self, steps: Iterator[_Step]) -> None:
        """Take the steps one after the other; a later one may look at the answers of earlier ones."""
        for probe, method, headers, body in steps:
            if self._unanswered == _MOST_UNANSWERED:
                return
            try:
                self.answers[probe] = self._ask(method, {**_ACCEPT, **headers}, body)
            except (OSError, http.client.HTTPException):
                self._unanswered += 1

    def _ask(self, method: str, headers: Mapping[str, str], body: Any) -> ProbeAnswer:
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        data = None if body is None else json.dumps(body).encode()
        sent = {**headers, **({"Content-Type": "application/json"} if data is not None else {})}
        with connected(self._url, _EACH) as connection:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            stream = found.get("content-type", "").startswith("text/event-stream")
            text = b"" if method == "GET" and stream else _first_event(response) if stream else _body(response)
        value = decode(text)
        message = value if isinstance(value, dict) else {}
        return ProbeAnswer(method, sent, body, response.status, found, message, has_body=bool(text.strip()))


def _body(response: http.client.HTTPResponse) -> bytes:
    """Return the body, or what of it came in time."""
    text = b""
    while len(text) < _MOST and (piece := response.read1(_MOST)):
        text += piece
    return text


def _first_event(response: http.client.HTTPResponse) -> bytes:
    """Return the first answer in an event stream, if it comes in time; the events before it are progress and log messages."""
    read, rest = 0, b""
    while read < _MOST and (piece := response.read1(_MOST)):
        read += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        if (found := next(filter(_is_answer, lines), b"")) != b"":
            return found[5:]
    return rest[5:] if _is_answer(rest) else b""


def _is_answer(line: bytes) -> bool:
    return line.startswith(b"data:") and (b'"result"' in line or b'"error"' in line)
