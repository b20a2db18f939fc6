"""Rules over HTTP: origins, sessions, statuses and headers, in both lifecycles. Of servers on stdio none applies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Era, Evidence, ProbeAnswer
from mcpfactory_pipeline.checks.exchange import FIRST_MODERN, LATEST_HANDSHAKE, STREAMABLE, STRUCTURED
from mcpfactory_pipeline.checks.rule import (
    Check,
    Fault,
    Rule,
    RuleOutcome,
    Severity,
    not_applicable,
    not_checked,
    rule_outcome,
)
from mcpfactory_pipeline.checks.rules.legacy import era_or_reason
from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION

Judge = Callable[[ProbeAnswer], Iterator[tuple[str, Severity | None]]]  # the problem, and the severity if tolerated


def over(era: Era | str, **judges: Judge) -> Check:
    """Return a check of the answers to some probes, `modern_get=…` for the probe `modern-get`."""
    named = {name.replace("_", "-"): judge for name, judge in judges.items()}

    def check(evidence: Evidence) -> RuleOutcome:
        if evidence.transport != "http":
            return not_applicable("the server is not at a URL")
        if (reason := era_or_reason(evidence, era)) is not None:
            return reason
        seen = [(probe, answer, named[probe]) for probe, answer in evidence.http.items() if probe in named]
        if not evidence.http:
            return not_checked("the URL did not answer")
        faults = (
            Fault(words, probe, proof=answer.to_proof(), lesser=lesser)
            for probe, answer, judge in seen
            for words, lesser in judge(answer)
        )
        return rule_outcome(len(seen), faults)

    return check


def wrong_status(wanted: int, why: str, *, tolerated: bool = True) -> Judge:
    """Return a check of a refusal's status; another 4xx is tolerated unless `tolerated` is false."""

    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        if answer.status != wanted:
            refused = tolerated and 400 <= answer.status < 500
            yield f"{why} got status {answer.status}, not {wanted}", 1 if refused else None

    return judge


def _problem(words: str, found: Callable[[ProbeAnswer], bool]) -> Judge:
    """Return a check for one problem; `{status}` in its words is the status of the answer."""

    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        if found(answer):
            yield words.format(status=answer.status), None

    return judge


def _foreign_page(rebound: ProbeAnswer | None) -> Judge:
    """Return a check of the answer to a foreign web page; `rebound` is the answer to one whose Host is also foreign.

    Refusing the foreign Host already prevents DNS rebinding, the attack behind this requirement, so the fault weighs
    less.
    """
    guarded = rebound is not None and 400 <= rebound.status < 500

    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        for words, lesser in wrong_status(403, "a request of a foreign web page")(answer):
            if guarded and lesser is None:
                yield f"{words}, though it is refused where its Host is foreign, too", 3
            else:
                yield words, lesser

    return judge


def _origin(evidence: Evidence) -> RuleOutcome:
    legacy, modern = (_foreign_page(evidence.http.get(probe)) for probe in _REBOUND)
    return over("", origin=legacy, modern_origin=modern)(evidence)


def _accepted(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.message.get("id") is not None:
        return  # legacy.responses and legacy.notifications say so
    if answer.status != 202:
        yield f"the status is {answer.status}, not 202", 1 if 200 <= answer.status < 300 else None
    elif answer.has_body:
        yield "there is a body", 1


def _stream(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    kind = answer.headers.get("content-type", "")
    if answer.status == 200 and not kind.startswith("text/event-stream"):
        yield f"GET got {kind or 'no content type'}, neither an event stream nor status 405", None
    elif answer.status not in (200, 405):
        yield (
            f"GET got status {answer.status}, neither an event stream nor 405",
            1 if 400 <= answer.status < 500 else None,
        )


def _begun(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    session = answer.headers.get("mcp-session-id")
    if session is not None and not (session and all(0x21 <= ord(letter) <= 0x7E for letter in session)):
        yield f"the session id {session[:60]!r} has letters that are not visible ASCII", None


def _kind(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.status == 200 and kind not in ("application/json", "text/event-stream"):
        yield f"the content type is {kind or 'missing'}", None


_turned_away = _problem("a request for another host name got status {status}", lambda answer: answer.status < 400)
_unversioned = _problem(
    "a request of a session without MCP-Protocol-Version got status {status}", lambda answer: answer.status >= 400
)
_array = _problem("an array got status {status}", lambda answer: answer.status < 400 and "error" not in answer.message)
_ended = _problem(
    "the stream goes on after the answer", lambda answer: answer.stream is not None and answer.stream.ended is False
)
_primed = _problem(
    "events have ids, and the first one has data",
    lambda answer: answer.stream is not None and bool(answer.stream.ids) and not answer.stream.primed,
)
_unprimed = _problem(
    f"a stream of {STRUCTURED} begins with an event without data",
    lambda answer: answer.stream is not None and bool(answer.stream.primed),
)
_REBOUND: Final[tuple[str, str]] = ("rebound", "modern-rebound")
_SETTINGS: Final = (
    "Python: TransportSecuritySettings(allowed_hosts=…, allowed_origins=…) as transport_security of the official SDK, and "
    "host_origin_protection=True with allowed_hosts=… and allowed_origins=… of FastMCP 4 (run and http_app; it is off unless asked for); TypeScript: enableDnsRebindingProtection with allowedHosts "
    "and allowedOrigins of StreamableHTTPServerTransport (createMcpExpressApp looks at Host only); Go: http.NewCrossOriginProtection().Handler(…) "
    "around the handler; Rust: allowed_origins of StreamableHttpServerConfig"
)

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="http.origin", severity=5, gate=True, check=_origin,
        statement="A request from a web page of another site (by its Origin) is refused with status 403.",
        source="MCP basic/transports, Security Warning: servers must validate the Origin header, against DNS rebinding",
        hint=f"compare Origin, if present, with the origins that you serve, before anything else. {_SETTINGS}",
    ),
    Rule(
        id="http.content-type", severity=3, gate=True, since=STREAMABLE, check=over("", begin=_kind, modern=_kind),
        statement="A request is answered with application/json or text/event-stream.",
        source="MCP basic/transports, Sending Messages to the Server",
        hint="set Content-Type",
    ),
    Rule(
        id="http.accepted", severity=3, gate=True, check=over("legacy", notify=_accepted, respond=_accepted),
        statement="Notifications and responses are answered with status 202 and no body.",
        source="MCP basic/transports, Sending Messages to the Server",
        hint="return status 202 if there is nothing to answer", since=STREAMABLE, until=LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.get", severity=3, gate=True, check=over("legacy", get=_stream),
        statement="GET is answered with an event stream or status 405.",
        source="MCP basic/transports, Listening for Messages from the Server",
        hint="return status 405 if you have no such stream", since=STREAMABLE, until=LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.session-id", severity=3, gate=True, check=over("legacy", begin=_begun),
        statement="Session ids contain only visible ASCII characters.",
        source="MCP basic/transports, Session Management",
        hint="use a UUID, or the hexadecimal digits of a random number", since=STREAMABLE, until=LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.no-session", severity=2, since=STREAMABLE, until=LATEST_HANDSHAKE,
        check=over("legacy", no_session=wrong_status(400, "a request without session id")),
        statement="If the server uses sessions, a request without a session id is answered with status 400.",
        source="MCP basic/transports, Session Management: servers that require a session should respond 400",
        hint="require Mcp-Session-Id in every request except initialize",
    ),
    Rule(
        id="http.unknown-session", severity=3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE,
        check=over("legacy", unknown_session=wrong_status(404, "a request in an unknown session")),
        statement="A request with an unknown session id is answered with status 404.",
        source="MCP basic/transports, Session Management: clients begin anew when they see 404",
        hint="return status 404, so that clients start a new session",
    ),
    Rule(
        id="http.deleted-session", severity=3, gate=True, since=STREAMABLE, until=LATEST_HANDSHAKE,
        check=over("legacy", after_delete=wrong_status(404, "a request in a session that was ended")),
        statement="A request in a session that DELETE ended is answered with status 404.",
        source="MCP basic/transports, Session Management",
        hint="forget the session when DELETE succeeds",
    ),
    Rule(
        id="http.version-header", severity=3, gate=True, since=STRUCTURED, until=LATEST_HANDSHAKE,
        check=over("legacy", version=wrong_status(400, "an MCP-Protocol-Version that no revision has")),
        statement="A request with an unknown MCP-Protocol-Version is answered with status 400.",
        source="MCP basic/transports, Protocol Version Header",
        hint="compare the header with the revisions that you support",
    ),
    Rule(
        id="http.arrays", severity=1, since=STRUCTURED, until=LATEST_HANDSHAKE, check=over("legacy", array=_array),
        statement="In revisions without batches, an array is refused.",
        source=("MCP basic/transports, Sending Messages to the Server: the body must be a single message (the "
                "sentence binds clients first: it weighs 1)"),
        hint="return status 400 for an array",
    ),
    Rule(
        id="http.host", severity=1, check=over("legacy", host=_turned_away),
        statement="On a loopback address, a request for another host name is refused.",
        source="MCP basic/transports, Security Warning: DNS rebinding; a browser sends no Origin with every request",
        hint=("return status 403 or 421: compare Host with the names that you serve; behind a proxy, include the "
              "names that it forwards"),
    ),
    Rule(
        id="http.version-missing", severity=2, since=STRUCTURED, until=LATEST_HANDSHAKE,
        check=over("legacy", no_version=_unversioned),
        statement="A request without MCP-Protocol-Version is served in the version of its session.",
        source=("MCP basic/transports, Protocol Version Header: the server should know the version by other means, or "
                "assume an older one"),
        hint="serve requests without the header: older clients do not send it",
    ),
    Rule(
        id="http.stream-ends", severity=2, since=STREAMABLE, check=over("", begin=_ended, modern=_ended),
        statement="An event stream ends after the response to its request.",
        source=("MCP basic/transports, Sending Messages to the Server: after the response has been sent, the server "
                "should terminate the stream"),
        hint="close the stream; otherwise clients keep one connection open per stream",
    ),
    Rule(
        id="http.polling", severity=1, since=LATEST_HANDSHAKE, until=LATEST_HANDSHAKE,
        check=over("legacy", begin=_primed, begin_older=_unprimed),
        statement=("A stream with event ids begins with an event that has an id and no data, but only in the revision "
                   "that defines this."),
        source=("MCP basic/transports, Sending Messages to the Server: it primes the client to reconnect; older "
                "clients cannot read it"),
        hint="send this event first if the session uses that revision",
    ),
)  # fmt: skip


_REFUSED: Final = (
    *("modern-no-version", "modern-other-version", "modern-no-method", "modern-other-method"),
    *("modern-other-name", "modern-unknown-method", "modern-unknown-version", "modern-no-capabilities"),
)


def _after(probe: str, code: int | None, why: str, check: Check) -> Check:
    """Return `check` for servers that answered another probe as they must: what they do not know they do not know here, either."""

    def judge(evidence: Evidence) -> RuleOutcome:
        answer = evidence.http.get(probe)
        if evidence.transport == "http" and answer is not None and _code(answer) != code:
            return not_applicable(why)
        return check(evidence)

    return judge


def _code(answer: ProbeAnswer) -> Any:
    error = answer.message.get("error")
    return error.get("code") if isinstance(error, dict) else None


def _refused(wanted: int, code: int, why: str) -> Judge:
    """Return a check of status and error code of a refusal in the per-request lifecycle; that of another 4xx is tolerated."""

    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        found = _code(answer)
        if answer.status != wanted or found != code:
            yield (
                f"{why} got status {answer.status} and error {found}, not {wanted} and {code}",
                1 if 400 <= answer.status < 500 else None,
            )

    return judge


def _with_status(wanted: int, code: int, why: str) -> Judge:
    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        if _code(answer) == code and answer.status != wanted:
            yield f"{why} got status {answer.status}, not {wanted}", 1 if 400 <= answer.status < 500 else None

    return judge


def _sessionless(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if "mcp-session-id" in answer.headers:
        yield "the answer gives a session id", None
    elif answer.status != 200:
        yield f"a request with a session id, which is to be ignored, got status {answer.status}", None


def _told(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    """Check that an unknown notification is accepted or refused, and never answered like a request."""
    if 200 <= answer.status < 300 and answer.has_body:
        yield f"a notification got status {answer.status} and a body", 1 if answer.status == 202 else None
    elif 200 <= answer.status < 300 and answer.status != 202:
        yield f"a notification got status {answer.status}, not 202", 1
    elif answer.status >= 500:
        yield f"a notification got status {answer.status}", None


def _echoed(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    own = _code(answer) in (*_MODERN, INVALID_PARAMS, METHOD_NOT_FOUND)  # others come from the older lifecycle's code
    if own and answer.message.get("id") != answer.sent["id"]:
        yield f"the error has the id {answer.message.get('id')!r}", None


def _taken(why: str) -> Judge:
    return _problem(f"{why} got error {HEADER_MISMATCH}", lambda answer: _code(answer) == HEADER_MISMATCH)


def _single(what: str) -> Judge:
    return _problem(f"{what} got status {{status}}", lambda answer: answer.status < 400 and _code(answer) is None)


_idless = _problem(
    "the events of a stream have ids", lambda answer: answer.stream is not None and bool(answer.stream.ids)
)
_unresumed = _problem(
    "a request with Last-Event-ID, which is to be ignored, got status {status}", lambda answer: answer.status != 200
)
_unbuffered = _problem(
    "the stream says no X-Accel-Buffering: no",
    lambda answer: answer.stream is not None and answer.headers.get("x-accel-buffering", "").strip().lower() != "no",
)
_MISMATCH: Final = (400, HEADER_MISMATCH)
_MODERN: Final = (HEADER_MISMATCH, UNSUPPORTED_VERSION)

MODERN_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="http.modern-version", severity=3, gate=True, since=FIRST_MODERN,
        check=over(
            "modern",
            modern_no_version=_refused(*_MISMATCH, "a request without MCP-Protocol-Version"),
            modern_other_version=_refused(*_MISMATCH, "a request whose header names another revision than its metadata"),
        ),
        statement=(f"A request is answered with status 400 and error {HEADER_MISMATCH} if its MCP-Protocol-Version is "
                   "missing or differs from its metadata."),
        source="MCP basic/transports/streamable-http, Protocol Version Header",
        hint="compare header and metadata before you run the method",
    ),
    Rule(
        id="http.modern-method", severity=3, gate=True, since=FIRST_MODERN,
        check=over(
            "modern",
            modern_no_method=_refused(*_MISMATCH, "a request without Mcp-Method"),
            modern_other_method=_refused(*_MISMATCH, "a request whose Mcp-Method is another than its method"),
        ),
        statement=(f"A request is answered with status 400 and error {HEADER_MISMATCH} if its Mcp-Method is missing or "
                   "differs from its method."),
        source="MCP basic/transports/streamable-http, Request Headers: proxies route by them, so they must not lie",
        hint="compare the header with the body",
    ),
    Rule(
        id="http.modern-name", severity=3, gate=True, since=FIRST_MODERN,
        check=over("modern", modern_other_name=_refused(*_MISMATCH, "a call whose Mcp-Name is another than its tool")),
        statement=(f"A call is answered with status 400 and error {HEADER_MISMATCH} if its Mcp-Name is not the name of "
                   "its tool."),
        source="MCP basic/transports/streamable-http, Request Headers",
        hint="compare the header with params.name, or params.uri",
    ),
    Rule(
        id="http.modern-status", severity=3, gate=True, since=FIRST_MODERN,
        check=over(
            "modern",
            modern_unknown_method=_with_status(404, METHOD_NOT_FOUND, "an unknown method"),
            modern_unknown_version=_with_status(400, UNSUPPORTED_VERSION, "an unknown revision"),
            modern_no_capabilities=_with_status(400, INVALID_PARAMS, "metadata without the client's capabilities"),
        ),
        statement=("Unknown methods are answered with status 404; unknown revisions and incomplete metadata with status "
                   "400."),
        source="MCP basic/transports/streamable-http; basic/versioning, Unsupported versions",
        hint="choose the status by the error code",
    ),
    Rule(
        id="http.modern-session", severity=3, gate=True, since=FIRST_MODERN, check=over("modern", modern=_sessionless),
        statement="In the per-request lifecycle, the server neither issues nor reads session ids.",
        source="MCP basic/transports/streamable-http, Backward Compatibility",
        hint="ignore Mcp-Session-Id if the metadata has a per-request revision",
    ),
    Rule(
        id="http.modern-get", severity=2, since=FIRST_MODERN, check=over("modern", modern_get=wrong_status(405, "GET")),
        statement="GET with a per-request revision is answered with status 405.",
        source="MCP basic/transports/streamable-http, Backward Compatibility",
        hint="return status 405 with Allow: POST",
    ),
    Rule(
        id="http.modern-accepted", severity=3, gate=True, check=over("modern", modern_notification=_told),
        statement="A notification is accepted with status 202 and no body, or refused.",
        source="MCP basic/transports/streamable-http, Sending Messages to the Server",
        hint="return status 202 if there is nothing to answer", since=FIRST_MODERN,
    ),
    Rule(
        id="http.modern-single", severity=1, since=FIRST_MODERN,
        check=over("modern", modern_array=_single("an array"), modern_response=_single("a response")),
        statement="An array is refused, and a response is also refused.",
        source=("MCP basic/transports/streamable-http, Sending Messages to the Server: the body must be a single "
                "request or notification (the sentence binds clients first: it weighs 1)"),
        hint="return status 400 for both",
    ),
    Rule(
        id="http.modern-error-id", severity=3, gate=True, since=FIRST_MODERN,
        check=over("modern", **{probe.replace("-", "_"): _echoed for probe in _REFUSED}),
        statement="If a request is refused, the error has the id of the request.",
        source="MCP basic/transports/streamable-http, Protocol Version Header",
        hint="read the body before you refuse a request because of a header",
    ),
    Rule(
        id="http.modern-headers", severity=3, gate=True, since=FIRST_MODERN,
        check=over("modern", modern_upper_names=_taken("a request whose header names are in capitals")),
        statement="Header names are compared case-insensitively.",
        source="MCP basic/transports/streamable-http, Case Sensitivity; RFC 9110 §5.1",
        hint="use the header lookup of your HTTP library",
    ),
    Rule(
        id="http.modern-blanks", severity=1, since=FIRST_MODERN,
        check=over("modern", modern_blanks=_taken("a request with blanks around its header values")),
        statement="Whitespace around a header value is ignored.",
        source=("MCP basic/transports/streamable-http, Case Sensitivity; RFC 9110 §5.5 (some HTTP libraries hand them "
                "on, and clients hardly send any: it weighs 1)"),
        hint="strip the value before you compare it",
    ),
    Rule(
        id="http.modern-case", severity=3, gate=True, since=FIRST_MODERN,
        check=_after("modern-other-method", HEADER_MISMATCH, "Mcp-Method is not compared", over("modern", modern_upper_value=_refused(*_MISMATCH, "a request whose Mcp-Method has other capitals than its method"))),
        statement=("Header values are compared case-sensitively: a value in another case is answered with status 400 and "
                   f"error {HEADER_MISMATCH}."),
        source="MCP basic/transports/streamable-http, Case Sensitivity",
        hint="compare the values without changing their case",
    ),
    Rule(
        id="http.modern-encoding", severity=3, gate=True, since=FIRST_MODERN,
        check=_after("modern-other-name", HEADER_MISMATCH, "Mcp-Name is not compared", over(
            "modern",
            modern_bad_base64=_refused(*_MISMATCH, "a call whose Mcp-Name has broken base64 between its marks"),
            modern_one_marker=_taken("a call whose Mcp-Name has the first mark of base64 and not the last, as its tool's name has,"),
            modern_encoded=_taken("a call whose Mcp-Name is its tool's name in base64"),
        )),
        statement=("Mcp-Name is decoded if it has both base64 marks, and used unchanged if one is missing. Invalid "
                   f"base64 is answered with status 400 and error {HEADER_MISMATCH}."),
        source="MCP basic/transports/streamable-http, Value Encoding",
        hint="decode strictly, and only values that begin with =?base64? and end with ?=",
    ),
    Rule(
        id="http.modern-resume", severity=3, gate=True, since=FIRST_MODERN,
        check=over("modern", modern=_idless, modern_last_event=_unresumed),
        statement="Events have no ids, and Last-Event-ID is ignored.",
        source="MCP basic/transports/streamable-http, Receiving Responses; Backward Compatibility",
        hint="leave ids out: streams of this revision cannot be resumed",
    ),
    Rule(
        id="http.modern-buffering", severity=1, since=FIRST_MODERN, check=over("modern", modern=_unbuffered),
        statement="A stream asks proxies not to buffer it.",
        source="MCP basic/transports/streamable-http, Receiving Responses: servers should send X-Accel-Buffering: no",
        hint="add the header X-Accel-Buffering: no",
    ),
)  # fmt: skip
