"""Rules over HTTP: origins, sessions, statuses and headers. Of servers on stdio none applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from mcpfactory_pipeline.checks import lifecycle
from mcpfactory_pipeline.checks.evidence import Era, Evidence, ProbeAnswer
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

Judge = Callable[[ProbeAnswer], Iterator[tuple[str, Severity | None]]]  # the problem, and the severity if tolerated


def over(era: Era | str, **judges: Judge) -> Check:
    """Return a check of the answers to some probes, `modern_get=…` for the probe `modern-get`."""
    named = {name.replace("_", "-"): judge for name, judge in judges.items()}

    def check(evidence: Evidence) -> RuleOutcome:
        if evidence.transport != "http":
            return not_applicable("the server is not at a URL")
        if (reason := era_or_reason(evidence, era)) is not None:
            return reason
        seen = [(probe, evidence.http[probe], judge) for probe, judge in _present(evidence, named)]
        if not evidence.http:
            return not_checked("the URL did not answer")
        return rule_outcome(
            len(seen), (fault for probe, answer, judge in seen for fault in _faults(probe, answer, judge))
        )

    return check


def _present(evidence: Evidence, named: dict[str, Judge]) -> Iterable[tuple[str, Judge]]:
    return [(probe, named[probe]) for probe in evidence.http if probe in named]


def _faults(probe: str, answer: ProbeAnswer, judge: Judge) -> Iterator[Fault]:
    for words, lesser in judge(answer):
        yield Fault(words, probe, proof=answer.to_proof(), lesser=lesser)


def wrong_status(wanted: int, why: str, *, tolerated: bool = True) -> Judge:
    """Return a check of a refusal's status; another 4xx is tolerated unless `tolerated` is false."""

    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        if answer.status != wanted:
            refused = tolerated and 400 <= answer.status < 500
            yield f"{why} got status {answer.status}, not {wanted}", 1 if refused else None

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


def _served(why: str) -> Judge:
    """Return a check that a request was served."""

    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        if answer.status >= 400:
            yield f"{why} got status {answer.status}", None

    return judge


def _turned_away(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.status < 400:
        yield f"a request for another host name got status {answer.status}", None


def _ended(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.stream is not None and answer.stream.ended is False:
        yield "the stream goes on after the answer", None


def _primed(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.stream is not None and answer.stream.ids and not answer.stream.primed:
        yield "events have ids, and the first one has data", None


def _unprimed(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.stream is not None and answer.stream.primed:
        yield f"a stream of {lifecycle.STRUCTURED} begins with an event without data", None


def _array(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.status < 400 and "error" not in answer.message:
        yield f"an array got status {answer.status}", None


_REBOUND: Final[tuple[str, str]] = ("rebound", "modern-rebound")
_SETTINGS: Final = (
    "Python: TransportSecuritySettings(allowed_hosts=…, allowed_origins=…) as transport_security of the official SDK, and "
    "host_origin_protection=True with allowed_hosts=… and allowed_origins=… of FastMCP 4 (run and http_app; it is off unless asked for); TypeScript: enableDnsRebindingProtection with allowedHosts "
    "and allowedOrigins of StreamableHTTPServerTransport (createMcpExpressApp looks at Host only); Go: http.NewCrossOriginProtection().Handler(…) "
    "around the handler; Rust: allowed_origins of StreamableHttpServerConfig"
)

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="http.origin", family="http", severity=5, gate=True,
        check=_origin,
        statement="A request that a web page of another site sent (by its Origin) is refused with status 403.",
        source="MCP basic/transports, Security Warning: servers must validate the Origin header, against DNS rebinding",
        hint=f"compare Origin, where there is one, with the origins that you serve, before anything else. {_SETTINGS}",
    ),
    Rule(
        id="http.content-type", family="http", severity=3, gate=True, check=over("", begin=_kind, modern=_kind),
        statement="A request is answered with application/json or text/event-stream.",
        source="MCP basic/transports, Sending Messages to the Server",
        hint="set Content-Type",
        since=lifecycle.STREAMABLE,
    ),
    Rule(
        id="http.accepted", family="http", severity=3, gate=True, check=over("legacy", notify=_accepted, respond=_accepted),
        statement="Notifications and responses are answered with status 202 and no body.",
        source="MCP basic/transports, Sending Messages to the Server",
        hint="answer 202 where there is nothing to answer",
        since=lifecycle.STREAMABLE, until=lifecycle.LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.get", family="http", severity=3, gate=True, check=over("legacy", get=_stream),
        statement="GET is answered with an event stream, or status 405.",
        source="MCP basic/transports, Listening for Messages from the Server",
        hint="answer 405 where you have no such stream",
        since=lifecycle.STREAMABLE, until=lifecycle.LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.session-id", family="http", severity=3, gate=True, check=over("legacy", begin=_begun),
        statement="Session ids are visible ASCII.",
        source="MCP basic/transports, Session Management",
        hint="use a UUID, or the hexadecimal digits of a random number",
        since=lifecycle.STREAMABLE, until=lifecycle.LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.no-session", family="http", severity=2, gate=False, check=over("legacy", no_session=wrong_status(400, "a request without session id")),
        statement="Where there are sessions, a request without session id is answered with status 400.",
        source="MCP basic/transports, Session Management: servers that require a session should respond 400",
        hint="look for Mcp-Session-Id with every request but initialize",
        since=lifecycle.STREAMABLE, until=lifecycle.LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.unknown-session", family="http", severity=3, gate=True, check=over("legacy", unknown_session=wrong_status(404, "a request in an unknown session")),
        statement="A request in a session that does not exist is answered with status 404.",
        source="MCP basic/transports, Session Management: clients begin anew when they see 404",
        hint="answer 404, so that clients know that they must begin anew",
        since=lifecycle.STREAMABLE, until=lifecycle.LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.deleted-session", family="http", severity=3, gate=True, check=over("legacy", after_delete=wrong_status(404, "a request in a session that was ended")),
        statement="So is one in a session that DELETE ended.",
        source="MCP basic/transports, Session Management",
        hint="forget the session when DELETE succeeds",
        since=lifecycle.STREAMABLE, until=lifecycle.LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.version-header", family="http", severity=3, gate=True, check=over("legacy", version=wrong_status(400, "an MCP-Protocol-Version that no revision has")),
        statement="A request with an MCP-Protocol-Version that no revision has is answered with status 400.",
        source="MCP basic/transports, Protocol Version Header",
        hint="compare the header with the revisions that you speak",
        since=lifecycle.STRUCTURED, until=lifecycle.LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.arrays", family="http", severity=1, gate=False, check=over("legacy", array=_array),
        statement="In revisions without batches, an array is refused.",
        source="MCP basic/transports, Sending Messages to the Server: the body must be a single message (the sentence binds clients first: it weighs 1)",
        hint="answer 400 to an array",
        since=lifecycle.STRUCTURED, until=lifecycle.LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.host", family="http", severity=1, gate=False,
        check=over("legacy", host=_turned_away),
        statement="On a loopback address, a request for another host name is refused.",
        source="MCP basic/transports, Security Warning: DNS rebinding; a browser sends no Origin with every request",
        hint="answer 403 or 421: compare Host with the names that you serve; behind a proxy name those that it passes on",
    ),
    Rule(
        id="http.version-missing", family="http", severity=2, gate=False,
        check=over("legacy", no_version=_served("a request of a session without MCP-Protocol-Version")),
        statement="A request without MCP-Protocol-Version is served in the version of its session.",
        source="MCP basic/transports, Protocol Version Header: the server should know the version by other means, or assume an older one",
        hint="the header may be missing: older clients do not know it",
        since=lifecycle.STRUCTURED, until=lifecycle.LATEST_HANDSHAKE,
    ),
    Rule(
        id="http.stream-ends", family="http", severity=2, gate=False, check=over("", begin=_ended, modern=_ended),
        statement="An event stream ends with the answer to its request.",
        source="MCP basic/transports, Sending Messages to the Server: after the response has been sent, the server should terminate the stream",
        hint="close the stream; clients keep one connection open for each that is not",
        since=lifecycle.STREAMABLE,
    ),
    Rule(
        id="http.polling", family="http", severity=1, gate=False, check=over("legacy", begin=_primed, begin_older=_unprimed),
        statement="A stream whose events have ids begins with an event that has an id and no data, and only in the revision that has this.",
        source="MCP basic/transports, Sending Messages to the Server: it primes the client to reconnect; older clients cannot read it",
        hint="send it where the session is of that revision, before anything else",
        since=lifecycle.LATEST_HANDSHAKE, until=lifecycle.LATEST_HANDSHAKE,
    ),
)  # fmt: skip
