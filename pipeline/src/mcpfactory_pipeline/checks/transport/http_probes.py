"""HTTP probes outside a conversation: statuses, headers, sessions, foreign origins."""

from __future__ import annotations

import base64
import codecs
import http.client
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.checks.evidence import EventStreamAnswer, HttpProbeAnswer, Lifecycle
from mcpfactory_pipeline.checks.exchange import (
    BATCHED,
    CAPABILITIES,
    LATEST_HANDSHAKE,
    STRUCTURED,
    VERSION,
    initialize_params,
    per_request_meta,
)
from mcpfactory_pipeline.checks.probes import LATER_REVISION, NOTHING, UNKNOWN_REVISION
from mcpfactory_pipeline.checks.rule import Fault, Severity
from mcpfactory_pipeline.checks.transport.conversation import decode, is_jsonrpc_answer
from mcpfactory_pipeline.checks.transport.http import connected
from mcpfactory_runtime.oauth.steps_and_metadata import is_loopback
from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION
from mcpfactory_runtime.types import Json

FOREIGN_ORIGIN: Final = "https://mcpfactory-foreign-origin.example"
# Headers that a browser sends in a DNS rebinding attack.
_REBOUND: Final = {"Origin": FOREIGN_ORIGIN, "Host": FOREIGN_ORIGIN.removeprefix("https://")}
FOREIGN_HOST: Final = "mcpfactory-foreign-host.example"
_MOST: Final = 1_000_000  # bytes; the rest of a longer body is not read
_EACH: Final = 5.0  # seconds; timeout of one answer, including its body
_MOST_UNANSWERED: Final = 3  # maximum number of unanswered probes; no more probes are sent then
LINGER: Final = 2.0  # seconds; maximum time between an answer and the end of its stream
# Factor: a stream may take LINGER seconds, or this multiple of its answer's duration, whichever is longer.
_SLOWER: Final = 10
_WATCHED: Final = frozenset({"begin", "modern"})  # probes that also wait for the end of the stream
_ACCEPT: Final = {"Accept": "application/json, text/event-stream"}

Headers = Mapping[str, str | None]
HttpExpectation = Callable[[HttpProbeAnswer], Iterator[Fault]]


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """One HTTP request with a single defect, and the expected answer.

    `headers` has only the headers that differ from a correct request; None removes a header. A function may compute
    them. The body is a per-request message with `method` and `params`, or `body`. If both `method` and `body` are set,
    the body is an array of two messages, and `body` is the id of the second message. `meta` replaces members of the
    per-request metadata; None removes a member. `session` is the probe that began the session of the request (handshake
    lifecycle only). `place` returns the URL of the request. `when` returns True for the servers that get the probe.
    """

    name: str
    lifecycle: Lifecycle
    what: str = ""
    expects: HttpExpectation | None = None
    headers: Headers | Callable[[HttpProbeSender, Headers], Headers] = field(default_factory=dict)
    method: str = ""
    params: Json | Callable[[HttpProbeSender], Json] = field(default_factory=dict)
    body: Any = None
    meta: Json = field(default_factory=dict)
    verb: str = "POST"
    session: str = "begin"
    place: Callable[[HttpProbeSender], str] = lambda asker: asker.url
    when: Callable[[HttpProbeSender], bool] = lambda _asker: True


# --- expectations ---


def http_fault(answer: HttpProbeAnswer, words: str, lesser: Severity | None = None) -> Fault:
    """Return a fault with the answer as proof."""
    return Fault(words, answer.probe, proof=answer.to_proof(), lesser=lesser)


def _tolerated(answer: HttpProbeAnswer) -> Severity | None:
    return 1 if 400 <= answer.status < 500 else None


def status(wanted: int) -> HttpExpectation:
    """Expect a status; another 4xx status has severity 1."""

    def expect(answer: HttpProbeAnswer) -> Iterator[Fault]:
        if answer.status != wanted:
            yield http_fault(answer, f"{answer.what} got status {answer.status}, not {wanted}", _tolerated(answer))

    return expect


def _with_code(wanted: int, code: int) -> HttpExpectation:
    return lambda answer: status(wanted)(answer) if answer.code == code else iter(())


def _refused_with(*codes: int) -> HttpExpectation:
    """Expect status 400 and one of the codes; another 4xx status has severity 1."""

    def expect(answer: HttpProbeAnswer) -> Iterator[Fault]:
        if answer.status != 400 or answer.code not in codes:
            words = f"{answer.what} got status {answer.status} and error {answer.code}, not 400 and {codes[0]}"
            yield http_fault(answer, words, _tolerated(answer))

    return expect


def _no(problem: Callable[[HttpProbeAnswer], bool], words: str = "{what} got status {status}") -> HttpExpectation:
    """Expect an answer without the given problem; `words` is a format string with `status` and `what`."""

    def expect(answer: HttpProbeAnswer) -> Iterator[Fault]:
        if problem(answer):
            yield http_fault(answer, words.format(status=answer.status, what=answer.what))

    return expect


def _accepted(answer: HttpProbeAnswer) -> Iterator[Fault]:
    if answer.message.get("id") is not None:
        return  # the rules legacy.responses and legacy.notifications report this error
    if answer.status != 202:
        bare = 200 <= answer.status < 300 and not answer.has_body
        yield http_fault(answer, f"the status is {answer.status}, not 202", 1 if bare else None)
    elif answer.has_body:
        yield http_fault(answer, "there is a body", 1)


def _stream(answer: HttpProbeAnswer) -> Iterator[Fault]:
    kind = answer.headers.get("content-type", "")
    if answer.status == 200 and not kind.startswith("text/event-stream"):
        yield http_fault(answer, f"GET got {kind or 'no content type'}, neither an event stream nor status 405")
    elif answer.status not in (200, 405):
        words = f"GET got status {answer.status}, neither an event stream nor 405"
        yield http_fault(answer, words, _tolerated(answer))


def _accepted_or_refused(answer: HttpProbeAnswer) -> Iterator[Fault]:
    """Expect that the server accepts or refuses an unknown notification, but never answers it."""
    if 200 <= answer.status < 300 and answer.has_body:
        words = f"a notification got status {answer.status} and a body"
        yield http_fault(answer, words, 1 if answer.status == 202 else None)
    elif 200 <= answer.status < 300 and answer.status != 202:
        yield http_fault(answer, f"a notification got status {answer.status}, not 202", 1)
    elif answer.status >= 500:
        yield http_fault(answer, f"a notification got status {answer.status}")


mismatch: Final = _refused_with(HEADER_MISMATCH)
no_mismatch: Final = _no(lambda answer: answer.code == HEADER_MISMATCH, f"{{what}} got error {HEADER_MISMATCH}")
_refused_or_error = _no(lambda answer: answer.status < 400 and answer.code is None)
_refused = _no(lambda answer: answer.status < 400)
_served = _no(lambda answer: answer.status >= 400)
_ok = _no(lambda answer: answer.status != 200)
_array_refused = _no(lambda answer: answer.status < 400 and "error" not in answer.message)
_primed = _no(
    lambda answer: answer.stream is not None and answer.stream.ids and not answer.stream.primed,
    "events have ids, and the first one has data",
)
_unprimed = _no(
    lambda answer: answer.stream is not None and answer.stream.primed,
    f"a stream of {STRUCTURED} begins with an event without data",
)
_without_ids = _no(lambda answer: answer.stream is not None and answer.stream.ids, "the events of a stream have ids")


# --- the table ---

_PING: Final[Json] = {"jsonrpc": "2.0", "id": "mcpfactory-http", "method": "ping"}
_RESPONSE: Final[Json] = {"jsonrpc": "2.0", "id": "mcpfactory-never-asked", "result": {}}
_INITIALIZED: Final[Json] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_CANCELED: Final[Json] = {
    "jsonrpc": "2.0",
    "method": "notifications/cancelled",
    "params": {"requestId": "mcpfactory-never-sent"},
}
_SECOND: Final = "mcpfactory-http-2"  # id of the second message in a batch
_NO_SESSION: Final = "mcpfactory-no-such-session"
_CHOSEN_SESSION: Final = "mcpfactory-session-that-the-client-chose"
_FOREIGN_PAGE: Final = "a request of a foreign web page"
_LOOKALIKE: Final = "mcpfactory-foreign.example"
_ONE_MARKER: Final = "a call whose Mcp-Name, like its tool's name, has only the first mark of base64,"
_UNMARKED: Final = "=?base64?bWNwZmFjdG9yeQ=="
_NAME: Final = "mcpfactory_nöthing"


def hello(revision: str) -> Json:
    """Return an `initialize` request with a revision."""
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params(revision)}


def _call(name: str) -> Json:
    return {"name": name, "arguments": {}}


def _is_refused(probe: str) -> Callable[[HttpProbeSender], bool]:
    return lambda asker: probe in asker.answers and asker.answers[probe].status >= 400


def _on_loopback(probe: str) -> Callable[[HttpProbeSender], bool]:
    return lambda asker: asker.loopback and _is_refused(probe)(asker)


def _origins(lifecycle: Lifecycle, origin: str, **request: Any) -> tuple[HttpProbe, ...]:
    begins, ends = (f"an Origin that only {word} like the server's," for word in ("begins", "ends"))
    rows = {
        "begins": (begins, _is_refused),
        "begins-localhost": (begins, _on_loopback),
        "ends": (ends, _is_refused),
        "null": ("the Origin null, which every sandboxed page has,", _is_refused),
        "rebound": ("a foreign Origin that equals Host", _on_loopback),
    }

    def probe(row: str, what: str, when: Callable[[str], Callable[[HttpProbeSender], bool]]) -> HttpProbe:
        def headers(asker: HttpProbeSender, correct: Headers) -> Headers:
            return {**correct, **_lookalike_headers(asker.url)[row]}

        name, words = f"{origin}-{row}", f"a request with {what}"
        return HttpProbe(name, lifecycle, words, _refused, headers, when=when(origin), **request)

    return tuple(probe(row, *rest) for row, rest in rows.items())


def _lookalike_headers(url: str) -> dict[str, Headers]:
    here = urlsplit(url)
    port = f":{here.port}" if here.port else ""
    name = _LOOKALIKE + port  # this name resolves to the loopback address, and browsers send it as Origin and as Host
    return {
        "begins": {"Origin": f"{here.scheme}://{here.hostname}.{name}"},
        "begins-localhost": {"Origin": f"http://localhost.{name}"},
        "ends": {"Origin": f"{here.scheme}://mcpfactory-foreign{here.hostname}{port}"},
        "null": {"Origin": "null"},
        "rebound": {"Origin": f"http://{name}", "Host": name},
    }


def _has_header(asker: HttpProbeSender) -> bool:
    return asker.sessions["begin"]["MCP-Protocol-Version"] > max(BATCHED)


def _began(probe: str) -> Callable[[HttpProbeSender], bool]:
    return lambda asker: "Mcp-Session-Id" in asker.sessions.get(probe, {})


_has_session: Final = _began("begin")


def _was_deleted(asker: HttpProbeSender) -> bool:
    deleted = asker.answers.get("delete")
    return _has_session(asker) and deleted is not None and deleted.status < 300


def _has_other_session(asker: HttpProbeSender) -> bool:
    first, other = (asker.sessions.get(name, {}).get("Mcp-Session-Id") for name in ("begin", "begin-other"))
    return other is not None and other != first


def _keeps_other_session(asker: HttpProbeSender) -> bool:
    other = asker.answers.get("other-session")
    return _was_deleted(asker) and other is not None and other.status < 400


def _known(method: str) -> Callable[[HttpProbeSender], bool]:
    return lambda asker: method in asker.known


def _params(method: str) -> Callable[[HttpProbeSender], Json]:
    return lambda asker: asker.known.get(method, _call(NOTHING))


def _has_ids(asker: HttpProbeSender) -> bool:
    stream = asker.answers["begin"].stream
    return stream is not None and stream.ids


_ROWS: Final = (
    HttpProbe("begin", "legacy", expects=_primed, body=hello(LATEST_HANDSHAKE)),
    HttpProbe("notify", "legacy", "a notification", _accepted, body=_INITIALIZED),
    HttpProbe("notify-canceled", "legacy", "a notification", _accepted_or_refused, body=_CANCELED),
    HttpProbe("respond", "legacy", "a response", _accepted, body=_RESPONSE),
    HttpProbe("origin", "legacy", _FOREIGN_PAGE, status(403), {"Origin": FOREIGN_ORIGIN}, body=_PING),
    HttpProbe("dns-rebinding", "legacy", headers=_REBOUND, body=_PING),
    *_origins("legacy", "origin", body=_PING),
    HttpProbe("host", "legacy", "a request for another host name", _refused, {"Host": FOREIGN_HOST}, body=_PING,
              when=lambda asker: asker.loopback),
    HttpProbe("get", "legacy", "GET", _stream, {"Accept": "text/event-stream"}, verb="GET"),
    HttpProbe("version", "legacy", "an MCP-Protocol-Version that no revision has", status(400),
              {"MCP-Protocol-Version": UNKNOWN_REVISION}, body=_PING, when=_has_header),
    HttpProbe("no-version", "legacy", "a request of a session without MCP-Protocol-Version", _served,
              {"MCP-Protocol-Version": None}, body=_PING, when=_has_header),
    HttpProbe("array", "legacy", "an array", _array_refused, body=[_PING, {**_PING, "id": _SECOND}], when=_has_header),
    HttpProbe("no-session", "legacy", "a request without session id", status(400),
              {"Mcp-Session-Id": None}, body=_PING, when=_has_session),
    HttpProbe("unknown-session", "legacy", "a request in an unknown session", status(404),
              {"Mcp-Session-Id": _NO_SESSION}, body=_PING, when=_has_session),
    HttpProbe("begin-other", "legacy", body=hello(LATEST_HANDSHAKE), session="", when=_has_session),
    HttpProbe("begin-chosen", "legacy", headers={"Mcp-Session-Id": _CHOSEN_SESSION}, body=hello(LATEST_HANDSHAKE),
              session="", when=_has_session),
    HttpProbe("other-session", "legacy", body=_PING, session="begin-other", when=_has_other_session),
    HttpProbe("delete", "legacy", verb="DELETE", when=_has_session),
    HttpProbe("after-delete", "legacy", "a request in a session that was ended", status(404), body=_PING,
              when=_was_deleted),
    HttpProbe("other-session-later", "legacy", "a request in a session, after another session was ended,", _served,
              body=_PING, session="begin-other", when=_keeps_other_session),
    # Clients of this older revision do not expect an event without data.
    HttpProbe("begin-older", "legacy", expects=_unprimed, body=hello(STRUCTURED), session="", when=_has_ids),
    *(HttpProbe(f"delete-{name}", "legacy", verb="DELETE", session=f"begin-{name}", when=_began(f"begin-{name}"))
      for name in ("other", "chosen", "older")),

    HttpProbe("modern", "modern", expects=_without_ids, headers={"Mcp-Session-Id": _NO_SESSION}, method="tools/list"),
    HttpProbe("modern-origin", "modern", _FOREIGN_PAGE, status(403), {"Origin": FOREIGN_ORIGIN}, "tools/list"),
    HttpProbe("modern-dns-rebinding", "modern", headers=_REBOUND, method="tools/list"),
    *_origins("modern", "modern-origin", method="tools/list"),
    HttpProbe("modern-no-version", "modern", "a request without MCP-Protocol-Version", mismatch,
              {"MCP-Protocol-Version": None}, "tools/list"),
    HttpProbe("modern-other-version", "modern", "a request whose MCP-Protocol-Version differs from its metadata", mismatch,
              {"MCP-Protocol-Version": LATEST_HANDSHAKE}, "tools/list"),
    HttpProbe("modern-no-method", "modern", "a request without Mcp-Method", mismatch, {"Mcp-Method": None}, "tools/list"),
    HttpProbe("modern-other-method", "modern", "a request whose Mcp-Method differs from its method", mismatch,
              {"Mcp-Method": "server/discover"}, "tools/list"),
    HttpProbe("modern-other-name", "modern", "a call whose Mcp-Name differs from its tool's name", mismatch,
              {"Mcp-Name": "mcpfactory_other"}, "tools/call", _params("tools/call")),
    HttpProbe("modern-no-name", "modern", "a call without Mcp-Name", mismatch, method="tools/call", params=_params("tools/call")),
    HttpProbe("modern-other-prompt", "modern", "prompts/get with the Mcp-Name of another prompt", mismatch,
              {"Mcp-Name": "mcpfactory_other"}, "prompts/get", _params("prompts/get"), when=_known("prompts/get")),
    HttpProbe("modern-other-resource", "modern", "resources/read with the Mcp-Name of another resource", mismatch,
              {"Mcp-Name": "mcpfactory:other"}, "resources/read", _params("resources/read"), when=_known("resources/read")),
    HttpProbe("modern-no-prompt-name", "modern", "prompts/get without Mcp-Name", mismatch, method="prompts/get",
              params=_params("prompts/get"), when=_known("prompts/get")),
    HttpProbe("modern-no-resource-name", "modern", "resources/read without Mcp-Name", mismatch, method="resources/read",
              params=_params("resources/read"), when=_known("resources/read")),
    HttpProbe("modern-unknown-method", "modern", "an unknown method", _with_code(404, METHOD_NOT_FOUND),
              method="mcpfactory/nothing"),
    HttpProbe("modern-unknown-version", "modern", "an unknown revision", _with_code(400, UNSUPPORTED_VERSION),
              {"MCP-Protocol-Version": LATER_REVISION}, "tools/list", meta={VERSION: LATER_REVISION}),
    HttpProbe("modern-no-capabilities", "modern", "metadata without the client's capabilities",
              _with_code(400, INVALID_PARAMS), method="tools/list", meta={CAPABILITIES: None}),
    # A server that also has sessions may treat a request without a revision as one of an older client.
    HttpProbe("modern-no-revision", "modern", "metadata without a revision",
              _refused_with(INVALID_PARAMS, HEADER_MISMATCH), method="tools/list", meta={VERSION: None},
              when=lambda asker: "begin" not in asker.answers),
    HttpProbe("modern-get", "modern", "GET", status(405), {"Mcp-Method": None, "Accept": "text/event-stream"}, verb="GET"),
    HttpProbe("modern-array", "modern", "an array", _refused_or_error, method="tools/list", body=_SECOND),
    HttpProbe("modern-response", "modern", "a response", _refused_or_error, body=_RESPONSE),
    HttpProbe("modern-notification", "modern", "a notification", _accepted_or_refused,
              method="notifications/mcpfactory/nothing"),
    HttpProbe("modern-last-event", "modern", "a request with Last-Event-ID, which is to be ignored,", _ok,
              {"Last-Event-ID": "mcpfactory-1"}, "tools/list"),
    HttpProbe("modern-header-names-uppercase", "modern", "a request whose header names are in capitals", no_mismatch,
              lambda _asker, plain: {name.upper(): value for name, value in plain.items()}, "tools/list"),
    HttpProbe("modern-header-value-uppercase", "modern", "a request whose Mcp-Method differs from its method in case", mismatch,
              lambda _asker, plain: {**plain, "Mcp-Method": str(plain["Mcp-Method"]).upper()}, "tools/list"),
    HttpProbe("modern-header-whitespace", "modern", "a request with blanks around its header values", no_mismatch,
              lambda _asker, plain: {name: f" {value} \t" for name, value in plain.items()}, "tools/list"),
    # The first of these probes has invalid base64 in the header; in all others, the header and the name match.
    HttpProbe("modern-invalid-base64", "modern", "a call whose Mcp-Name has broken base64 between its marks", mismatch,
              {"Mcp-Name": "=?base64?mcpfactory!?="}, "tools/call", _call(NOTHING)),
    HttpProbe("modern-half-base64-marker", "modern", _ONE_MARKER, no_mismatch,
              {"Mcp-Name": _UNMARKED}, "tools/call", _call(_UNMARKED)),
    HttpProbe("modern-encoded", "modern", "a call whose Mcp-Name is its tool's name in base64", no_mismatch,
              {"Mcp-Name": f"=?base64?{base64.b64encode(_NAME.encode()).decode()}?="}, "tools/call", _call(_NAME)),
)  # fmt: skip
HTTP_PROBES: Final[Mapping[str, HttpProbe]] = {row.name: row for row in _ROWS}


def probe_http(
    url: str,
    spoken: Collection[Lifecycle],
    modern: str,
    seconds_left: Callable[[], float],
    known: Mapping[str, Json] | None = None,
    *,
    credentials: Mapping[str, str] | None = None,
) -> dict[str, HttpProbeAnswer]:
    """Send the probes of each lifecycle that the server speaks; the result omits unanswered probes.

    The function blocks. At the time limit, the function still waits for the answer to the last probe.

    Args:
        url: the URL of the endpoint, after redirects.
        spoken: the lifecycles of the server.
        modern: the per-request revision of the server.
        seconds_left: returns the seconds until the time limit.
        known: method → params of a request that the server answered.
        credentials: headers for every request.
    """
    asker = HttpProbeSender(url, modern, seconds_left, known, credentials)
    for lifecycle in sorted(spoken):
        asker.run(row for row in HTTP_PROBES.values() if row.lifecycle == lifecycle)
    return asker.answers


class HttpProbeSender:
    """Sender of the probes, in order; a probe may depend on the answers to earlier probes.

    Attributes:
        answers: name of the probe → answer. sessions: probe that began a session → correct headers of the session.
        known: method → params of a request that the server answered.
    """

    def __init__(
        self,
        url: str,
        modern: str,
        seconds_left: Callable[[], float],
        known: Mapping[str, Json] | None = None,
        credentials: Mapping[str, str] | None = None,
    ) -> None:
        self.url: str = url
        self.answers: dict[str, HttpProbeAnswer] = {}
        self.sessions: dict[str, dict[str, str]] = {}
        self.known = known or {}
        self._credentials = credentials or {}
        self._modern = modern
        self._seconds_left = seconds_left
        self._unanswered = 0

    @property
    def _listing(self) -> str:
        """Return the method that probes send instead of `tools/list`, if the server has no tools."""
        return next((method for method in self.known if method.endswith("/list")), "tools/list")

    @property
    def loopback(self) -> bool:
        """Return True if the server's address is a loopback address."""
        return is_loopback(urlsplit(self.url).hostname)

    def run(self, rows: Iterable[HttpProbe]) -> None:
        """Send the probes that suit the server; stop at the time limit, or after several unanswered probes."""
        for probe in rows:
            if self._unanswered == _MOST_UNANSWERED or self._seconds_left() <= 0:
                return
            if not probe.when(self):
                continue
            try:
                answer = self._ask(probe)
            except (OSError, http.client.HTTPException, ValueError):  # ValueError: the server named an invalid URL
                self._unanswered += 1
                if probe.name == "begin":
                    return
                continue
            self.answers[probe.name] = answer
            if probe.name.startswith("begin"):
                self._enter(answer)

    def _enter(self, answer: HttpProbeAnswer) -> None:
        result, session = answer.message.get("result"), answer.headers.get("mcp-session-id")
        agreed = str(result.get("protocolVersion", "")) if isinstance(result, dict) else ""
        begun = {"Mcp-Session-Id": session} if session is not None else {}
        self.sessions[answer.probe] = {**begun, "MCP-Protocol-Version": agreed}

    def _method(self, probe: HttpProbe) -> str:
        return self._listing if probe.method in ("", "tools/list") else probe.method

    def _message(self, probe: HttpProbe) -> Any:
        if not probe.method:
            return probe.body
        meta = {
            key: value for key, value in {**per_request_meta(self._modern), **probe.meta}.items() if value is not None
        }
        params = probe.params(self) if callable(probe.params) else probe.params
        method = self._method(probe)
        told = method.startswith("notifications/")
        message = {
            "jsonrpc": "2.0",
            **({} if told else {"id": "mcpfactory-http"}),
            "method": method,
            "params": {**params, "_meta": meta},
        }
        return [message, {**message, "id": probe.body}] if probe.body is not None else message

    def _ask(self, probe: HttpProbe) -> HttpProbeAnswer:
        url = urlsplit(probe.place(self))
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        body = self._message(probe)
        data = None if body is None else json.dumps(body).encode()
        plain: Headers = self.sessions.get(probe.session, {})
        if probe.lifecycle == "modern":
            plain = {"MCP-Protocol-Version": self._modern, "Mcp-Method": self._method(probe)}
        headers = probe.headers(self, plain) if callable(probe.headers) else {**plain, **probe.headers}
        headers = {
            **_ACCEPT,
            **self._credentials,
            **headers,
            **({"Content-Type": "application/json"} if data is not None else {}),
        }
        sent = {name: value for name, value in headers.items() if value is not None}
        with connected(url, _EACH) as connection:
            # Keep the socket, because `connection` drops it if the server announces a close.
            sock = connection.sock
            connection.request(probe.verb, path, data, sent)
            response = connection.getresponse()
            found = {name.lower(): ", ".join(response.headers.get_all(name, ())) for name in response.headers}
            stream: EventStreamAnswer | None = None
            if not found.get("content-type", "").lower().startswith("text/event-stream"):
                text = _body(response)
            elif probe.verb == "GET":
                text = b""
            else:
                text, stream = _events(response, wait=sock.settimeout if probe.name in _WATCHED else None)
        value = decode(text)
        return HttpProbeAnswer(
            probe=probe.name,
            what=probe.what,
            verb=probe.verb,
            sent_headers={name: f"[header {name}]" if name in self._credentials else sent[name] for name in sent},
            sent=body,
            status=response.status,
            headers=found,
            message=value if isinstance(value, dict) else {},
            has_body=bool(text.strip()),
            stream=stream,
            url=self.url,
        )


def _body(response: http.client.HTTPResponse) -> bytes:
    text = b""
    while len(text) < _MOST and (piece := response.read1(_MOST)):
        text += piece
    return text


def _events(
    response: http.client.HTTPResponse, wait: Callable[[float], None] | None = None
) -> tuple[bytes, EventStreamAnswer]:
    """Return the answer in an event stream (or else the first event), and the state of the stream.

    The events before the answer are progress and log messages. `wait` sets the read timeout; if it is given, also wait
    for the end of the stream.
    """
    began, read, rest, lines = time.monotonic(), 0, b"", list[bytes]()
    answer, other, data = b"", b"", list[bytes]()
    while not answer and read < _MOST and (piece := response.read1(_MOST)):
        piece = piece if read else piece.removeprefix(codecs.BOM_UTF8)
        read += len(piece) or 1
        *whole, rest = (rest + piece).split(b"\n")
        lines += whole
        for line in whole:
            if line.startswith(b"data:"):
                data.append(line[5:])
            elif not line.rstrip(b"\r"):  # an empty line ends an event
                answer, other, data = answer or _answer(data), other or b"\n".join(data), []
    lines += [rest]
    answer = answer or _answer([*data, rest.removeprefix(b"data:")])
    ended = None
    if answer and wait is not None:
        ended = _ends(response, wait, max(LINGER, _SLOWER * (time.monotonic() - began)))
    ids = any(line.startswith(b"id:") for line in lines)
    return answer or other, EventStreamAnswer(ids, ids and _is_primed(lines), ended)


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
        return True  # a reset also ends the connection
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


def _answer(data: list[bytes]) -> bytes:
    value = decode(text := b"\n".join(data))
    return text if isinstance(value, dict) and is_jsonrpc_answer(value) else b""
