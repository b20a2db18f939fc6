"""Rules for HTTP in the per-request lifecycle: headers, and invalid requests. They do not apply on stdio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks import lifecycle
from mcpfactory_pipeline.checks.evidence import Evidence, ProbeAnswer
from mcpfactory_pipeline.checks.rule import Check, Rule, RuleOutcome, Severity, not_applicable
from mcpfactory_pipeline.checks.rules.http import Judge, over
from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION

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
    """Return the code of an error, or None if the answer is not a JSON-RPC error."""
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
    """Return a check of the HTTP status of a correct error; the error itself is judged in `modern`."""

    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        if _code(answer) == code and answer.status != wanted:
            yield f"{why} got status {answer.status}, not {wanted}", 1 if 400 <= answer.status < 500 else None

    return judge


def _sessionless(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if "mcp-session-id" in answer.headers:
        yield "the answer gives a session id", None
    elif answer.status != 200:
        yield f"a request with a session id, which is to be ignored, got status {answer.status}", None


def _no_get(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.status != 405:
        yield f"GET got status {answer.status}, not 405", 1 if 400 <= answer.status < 500 else None


def _told(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    """Check that an unknown notification is accepted or refused, and never answered like a request."""
    if 200 <= answer.status < 300 and answer.has_body:
        yield f"a notification got status {answer.status} and a body", 1 if answer.status == 202 else None
    elif 200 <= answer.status < 300 and answer.status != 202:
        yield f"a notification got status {answer.status}, not 202", 1
    elif answer.status >= 500:
        yield f"a notification got status {answer.status}", None


def _single(what: str) -> Judge:
    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        if answer.status < 400 and _code(answer) is None:
            yield f"{what} got status {answer.status}", None

    return judge


def _echoed(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    own = _code(answer) in (*_MODERN, INVALID_PARAMS, METHOD_NOT_FOUND)  # others come from the older lifecycle's code
    if own and answer.message.get("id") != answer.sent["id"]:
        yield f"the error has the id {answer.message.get('id')!r}", None


def _taken(why: str) -> Judge:
    """Return a check that headers were not taken for wrong ones."""

    def judge(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
        if _code(answer) == HEADER_MISMATCH:
            yield f"{why} got error {HEADER_MISMATCH}", None

    return judge


def _idless(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.stream is not None and answer.stream.ids:
        yield "the events of a stream have ids", None


def _unresumed(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.status != 200:
        yield f"a request with Last-Event-ID, which is to be ignored, got status {answer.status}", None


def _unbuffered(answer: ProbeAnswer) -> Iterator[tuple[str, Severity | None]]:
    if answer.stream is not None and answer.headers.get("x-accel-buffering", "").strip().lower() != "no":
        yield "the stream says no X-Accel-Buffering: no", None


_MISMATCH: Final = (400, HEADER_MISMATCH)
_MODERN: Final = (HEADER_MISMATCH, UNSUPPORTED_VERSION)

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="http.modern-version", family="http", severity=3, gate=True,
        check=over(
            "modern",
            modern_no_version=_refused(*_MISMATCH, "a request without MCP-Protocol-Version"),
            modern_other_version=_refused(*_MISMATCH, "a request whose header names another revision than its metadata"),
        ),
        statement=f"A request whose MCP-Protocol-Version is missing, or not that of its metadata, is answered with status 400 and error {HEADER_MISMATCH}.",
        source="MCP basic/transports/streamable-http, Protocol Version Header",
        hint="compare header and metadata before the method is run",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-method", family="http", severity=3, gate=True,
        check=over(
            "modern",
            modern_no_method=_refused(*_MISMATCH, "a request without Mcp-Method"),
            modern_other_method=_refused(*_MISMATCH, "a request whose Mcp-Method is another than its method"),
        ),
        statement=f"A request whose Mcp-Method is missing, or not its method, is answered with status 400 and error {HEADER_MISMATCH}.",
        source="MCP basic/transports/streamable-http, Request Headers: proxies route by them, so they must not lie",
        hint="compare the header with the body",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-name", family="http", severity=3, gate=True,
        check=over("modern", modern_other_name=_refused(*_MISMATCH, "a call whose Mcp-Name is another than its tool")),
        statement=f"A call whose Mcp-Name is not its tool's name is answered with status 400 and error {HEADER_MISMATCH}.",
        source="MCP basic/transports/streamable-http, Request Headers",
        hint="compare the header with params.name, or params.uri",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-status", family="http", severity=3, gate=True,
        check=over(
            "modern",
            modern_unknown_method=_with_status(404, METHOD_NOT_FOUND, "an unknown method"),
            modern_unknown_version=_with_status(400, UNSUPPORTED_VERSION, "an unknown revision"),
            modern_no_capabilities=_with_status(400, INVALID_PARAMS, "metadata without the client's capabilities"),
        ),
        statement="Unknown methods are answered with status 404, unknown revisions and incomplete metadata with 400.",
        source="MCP basic/transports/streamable-http; basic/versioning, Unsupported versions",
        hint="choose the status by the error's code",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-session", family="http", severity=3, gate=True, check=over("modern", modern=_sessionless),
        statement="In the per-request lifecycle session ids are neither given nor looked at.",
        source="MCP basic/transports/streamable-http, Backward Compatibility",
        hint="ignore Mcp-Session-Id where the metadata names a per-request revision",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-get", family="http", severity=2, gate=False, check=over("modern", modern_get=_no_get),
        statement="GET with a per-request revision is answered with status 405.",
        source="MCP basic/transports/streamable-http, Backward Compatibility",
        hint="answer 405 with Allow: POST",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-accepted", family="http", severity=3, gate=True, check=over("modern", modern_notification=_told),
        statement="A notification is accepted with status 202 and no body, or refused.",
        source="MCP basic/transports/streamable-http, Sending Messages to the Server",
        hint="answer 202 where there is nothing to answer",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-single", family="http", severity=1, gate=False,
        check=over("modern", modern_array=_single("an array"), modern_response=_single("a response")),
        statement="An array is refused, and so is a response.",
        source="MCP basic/transports/streamable-http, Sending Messages to the Server: the body must be a single request or notification (the sentence binds clients first: it weighs 1)",
        hint="answer 400 to both",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-error-id", family="http", severity=3, gate=True,
        check=over("modern", **{probe.replace("-", "_"): _echoed for probe in _REFUSED}),
        statement="The error of a refusal has the id of its request.",
        source="MCP basic/transports/streamable-http, Protocol Version Header",
        hint="read the body before you refuse for a header",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-headers", family="http", severity=3, gate=True,
        check=over("modern", modern_upper_names=_taken("a request whose header names are in capitals")),
        statement="Names of headers are compared without case.",
        source="MCP basic/transports/streamable-http, Case Sensitivity; RFC 9110 §5.1",
        hint="let your HTTP library look headers up",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-blanks", family="http", severity=1, gate=False,
        check=over("modern", modern_blanks=_taken("a request with blanks around its header values")),
        statement="Blanks around the value of a header are no part of it.",
        source="MCP basic/transports/streamable-http, Case Sensitivity; RFC 9110 §5.5 (some HTTP libraries hand them on, and clients hardly send any: it weighs 1)",
        hint="strip the value before it is compared",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-case", family="http", severity=3, gate=True,
        check=_after("modern-other-method", HEADER_MISMATCH, "Mcp-Method is not compared", over("modern", modern_upper_value=_refused(*_MISMATCH, "a request whose Mcp-Method has other capitals than its method"))),
        statement=f"Values of headers are compared with case: another one is answered with status 400 and error {HEADER_MISMATCH}.",
        source="MCP basic/transports/streamable-http, Case Sensitivity",
        hint="compare the values as they are",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-encoding", family="http", severity=3, gate=True,
        check=_after("modern-other-name", HEADER_MISMATCH, "Mcp-Name is not compared", over(
            "modern",
            modern_bad_base64=_refused(*_MISMATCH, "a call whose Mcp-Name has broken base64 between its marks"),
            modern_one_marker=_taken("a call whose Mcp-Name has the first mark of base64 and not the last, as its tool's name has,"),
            modern_encoded=_taken("a call whose Mcp-Name is its tool's name in base64"),
        )),
        statement=f"Mcp-Name is decoded where it stands between the marks of base64, and taken as it is where one is missing; broken base64 is answered with status 400 and error {HEADER_MISMATCH}.",
        source="MCP basic/transports/streamable-http, Value Encoding",
        hint="decode what begins with =?base64? and ends with ?=, strictly, and nothing else",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-resume", family="http", severity=3, gate=True, check=over("modern", modern=_idless, modern_last_event=_unresumed),
        statement="Events have no ids, and Last-Event-ID is ignored.",
        source="MCP basic/transports/streamable-http, Receiving Responses; Backward Compatibility",
        hint="streams of this revision are not resumed: leave ids out",
        since=lifecycle.FIRST_MODERN,
    ),
    Rule(
        id="http.modern-buffering", family="http", severity=1, gate=False, check=over("modern", modern=_unbuffered),
        statement="A stream asks proxies not to hold it back.",
        source="MCP basic/transports/streamable-http, Receiving Responses: servers should send X-Accel-Buffering: no",
        hint="add the header X-Accel-Buffering: no",
        since=lifecycle.FIRST_MODERN,
    ),
)  # fmt: skip
