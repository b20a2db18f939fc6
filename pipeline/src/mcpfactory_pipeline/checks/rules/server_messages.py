"""Rules about unsolicited messages of a server: notifications, and requests to the client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mcpfactory_pipeline.checks.client_capabilities import undeclared_client_capability
from mcpfactory_pipeline.checks.evidence import CanceledCall, Evidence, Lifecycle, ServerMessage, Session
from mcpfactory_pipeline.checks.exchange import FIRST_MODERN, LATEST_HANDSHAKE, LOG_LEVEL, revision_defines_path
from mcpfactory_pipeline.checks.message_schemas import params_errors
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, Scope, not_applicable
from mcpfactory_pipeline.checks.rules.subjects import missing_lifecycle_outcome
from mcpfactory_pipeline.checks.transport.conversation import progress_token
from mcpfactory_runtime.revisions import REVISIONS

RULES: Final = RuleTable()
rule = RULES.rule
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_LISTS: Final = {
    f"notifications/{kind}/list_changed": (kind, "listChanged") for kind in ("tools", "resources", "prompts")
}
_KNOWN: Final = frozenset(name for revision in REVISIONS.values() for name in revision.notifications)
_LOG: Final = "notifications/message"
_PROGRESS: Final = "notifications/progress"
_UPDATED: Final = "notifications/resources/updated"


def _sent(evidence: Evidence, lifecycle: Lifecycle | str = "") -> list[ServerMessage] | RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence, lifecycle)) is not None:
        return reason
    # A server without the handshake has no session of the older lifecycle, even if the client requested one.
    modern = "legacy" not in evidence.lifecycles
    sent = [
        one for one in evidence.server_messages if not lifecycle or (one.modern or modern) == (lifecycle == "modern")
    ]
    return sent or not_applicable("the server sent no unsolicited message")


def _messages(*, lifecycle: Lifecycle | str = "", method: str = "") -> Scope[ServerMessage]:
    def scope(evidence: Evidence) -> RuleSubjects[ServerMessage] | RuleOutcome:
        sent = _sent(evidence, lifecycle)
        if isinstance(sent, RuleOutcome):
            return sent
        return RuleSubjects([one for one in sent if not method or one.method == method], 1, once=True)

    return scope


def _fault(words: str, one: ServerMessage) -> Fault:
    proof = {"sent by the server": str(one.message)[:1_000], "while it had to answer": str(one.during)[:1_000]}
    return Fault(words, one.method, proof=proof)


@rule("server-messages.undeclared-requests", 5, gate=True, until=LATEST_HANDSHAKE, over=_messages(lifecycle="legacy"),
      statement="The server sends only requests that match the declared capabilities of the client.",
      source="MCP basic/lifecycle, Operation: both sides must only use capabilities that were negotiated",
      hint="check the client's capabilities before you ask for sampling, roots or elicitation")  # fmt: skip
def _requests(one: ServerMessage) -> Iterator[Fault]:
    if "id" in one.message and undeclared_client_capability(one.message, one.declared):
        yield _fault(f"the server requests {one.method}, and the client declared no such capability", one)


@rule("server-messages.before-initialized", 2, until=LATEST_HANDSHAKE, over=_messages(lifecycle="legacy"),
      statement="Before notifications/initialized, the server sends no request except ping.",
      source="MCP basic/lifecycle, Initialization: the server should not send other requests",
      hint="wait for notifications/initialized")  # fmt: skip
def _early(one: ServerMessage) -> Iterator[Fault]:
    if "id" in one.message and one.method != "ping" and not one.initialized:
        yield _fault(f"the server requests {one.method} before notifications/initialized", one)


@rule("server-messages.modern-requests", 5, gate=True, since=FIRST_MODERN, over=_messages(lifecycle="modern"),
      statement="In the per-request lifecycle, the server sends no requests.",
      source="MCP basic/transports: the server must not send JSON-RPC requests; basic/patterns/mrtr defines how a server asks for input",
      hint='return a result with "resultType": "input_required" to ask for input')  # fmt: skip
def _modern_requests(one: ServerMessage) -> Iterator[Fault]:
    if "id" in one.message:
        yield _fault(f"the server sends a request, {one.method}, to a client of the per-request lifecycle", one)


@rule("server-messages.json-rpc", 3, gate=True, over=_messages(),
      statement=("Unsolicited messages of the server are JSON-RPC requests or notifications: params are an object, "
                 "and notifications have no id."),
      source="MCP basic/index, Messages",
      hint="validate every message that you send against the schema of the protocol")  # fmt: skip
def _shape(one: ServerMessage) -> Iterator[Fault]:
    number = one.message.get("id", "")
    if "params" in one.message and not isinstance(one.message["params"], dict):
        yield _fault(f"the params of {one.method} are not an object", one)
    elif "id" in one.message and one.method.startswith("notifications/"):
        yield _fault(f"{one.method} is a notification and has an id", one)
    elif not _is_request_id(number):
        yield _fault(f"the id of the request {one.method} is neither a text nor a whole number", one)


def _is_request_id(value: object) -> bool:
    whole = isinstance(value, int | float) and value == value // 1  # JSON does not distinguish 5.0 from 5
    return isinstance(value, str) or (whole and not isinstance(value, bool))


def _requesting_sessions(evidence: Evidence) -> RuleSubjects[Session] | RuleOutcome:
    """Select the sessions with one `initialize`; over HTTP, only those with a session id."""
    begin = evidence.http.get("begin")
    if evidence.transport == "http" and (begin is None or "mcp-session-id" not in begin.headers):
        return not_applicable("the server has no sessions")
    # A resumed stream may deliver a request again.
    sessions = [one for one in evidence.sessions if one.purpose.startswith("session ") and not one.event_ids]
    return missing_lifecycle_outcome(evidence, "legacy") or RuleSubjects(sessions, 1, once=True)


@rule("server-messages.request-ids", 3, gate=True, until=LATEST_HANDSHAKE, over=_requesting_sessions,
      statement="In a session, each request of the server has another id.",
      source="MCP basic/index, Requests: the id must not have been used before by the requestor in the same session",
      hint="count the requests of each session, and use the number as id")  # fmt: skip
def _own_ids(session: Session) -> Iterator[Fault]:
    seen: set[str] = set()
    for one in session.messages:
        if "id" not in one.message or one.modern or one.method.startswith("notifications/"):
            continue
        if (number := repr(one.message["id"])) in seen:
            yield _fault(f"the request {one.method} has the id {number}, as an earlier request of the session", one)
        seen.add(number)


@rule("server-messages.known-notifications", 1, over=_messages(),
      statement="The server sends only notifications that an MCP revision defines.",
      source="MCP schema, ServerNotification",
      hint="use a name outside notifications/ for custom notifications; clients drop unknown ones")  # fmt: skip
def _known(one: ServerMessage) -> Iterator[Fault]:
    if one.method.startswith("notifications/") and one.method not in _KNOWN and "id" not in one.message:
        yield _fault(f"no revision has the notification {one.method}", one)


@rule("server-messages.log-declared", 2, until=LATEST_HANDSHAKE, over=_messages(lifecycle="legacy", method=_LOG),
      statement="A server that sends log messages declares logging.",
      source=("MCP server/utilities/logging, Capabilities: it must declare the capability (clients that do not "
              "expect the messages drop them: severity 2)"),
      hint='declare "logging": {} or log to stderr')  # fmt: skip
def _log_declared(one: ServerMessage, evidence: Evidence) -> Iterator[Fault]:
    if "logging" not in evidence.capabilities:
        yield _fault("the server sends log messages, and does not declare logging", one)


@rule("server-messages.schema", 3, gate=True, over=_messages(),
      statement="The params of requests and notifications that the server sends match the schema of their method.",
      source="MCP schema, ServerRequest and ServerNotification",
      hint="validate every message that you send against the schema of the protocol")  # fmt: skip
def _schema(one: ServerMessage, evidence: Evidence) -> Iterator[Fault]:
    for path, problem in params_errors(one.method, one.params):
        if revision_defines_path(path, evidence.revisions):
            yield _fault(f"in params, {path} {problem}", one)


@rule("server-messages.log-level", 3, gate=True, until=LATEST_HANDSHAKE, over=_messages(lifecycle="legacy", method=_LOG),
      statement="After logging/setLevel, only messages of that level and above are sent.",
      source="MCP server/utilities/logging, Setting Log Level",
      hint="compare the level of each message with the requested level")  # fmt: skip
def _log_level(one: ServerMessage, evidence: Evidence) -> Iterator[Fault]:
    asked, level = evidence.probes.get("set-level"), one.params.get("level")
    if asked is None or asked.result is None or level not in LEVELS[:-1]:
        return
    # These calls follow logging/setLevel; the session in the sandbox sets no level.
    if any(call.exchange.sent == one.during for call in evidence.timed_calls):
        yield _fault(f"level emergency was requested, but a message of level {level} was sent", one)


@rule("server-messages.modern-logs", 3, gate=True, since=FIRST_MODERN, over=_messages(lifecycle="modern", method=_LOG),
      statement=("No log messages are sent for a request without a log level, even after a request with a level, and none "
                 "after the result. A message below the requested level closes no gate."),
      source=("MCP server/utilities/logging: without the metadata the server must not send log messages; it may send "
              "messages at or above the level, before the final response"),
      hint="read the log level from the request's metadata, and send log messages before the result")  # fmt: skip
def _modern_logs(one: ServerMessage) -> Iterator[Fault]:
    during = one.during.get("params") if one.during is not None else None
    meta = during.get("_meta") if isinstance(during, dict) else None
    asked, level = meta.get(LOG_LEVEL) if isinstance(meta, dict) else None, one.params.get("level")
    if asked is None:
        yield _fault("a log message was sent for a request that named no log level, or after the result", one)
    elif asked in LEVELS and level in LEVELS and LEVELS.index(level) < LEVELS.index(asked):
        yield replace(_fault(f"level {asked} was requested, but a message of level {level} was sent", one), lesser=2)


@rule("server-messages.changes-declared", 2, until=LATEST_HANDSHAKE, over=_messages(lifecycle="legacy"),
      statement="A server that reports changed lists declares listChanged.",
      source="MCP server/tools, server/resources and server/prompts, List Changed Notification",
      hint='declare {"listChanged": true}; otherwise clients that check the capability do not listen')  # fmt: skip
def _changes_declared(one: ServerMessage, evidence: Evidence) -> Iterator[Fault]:
    kind, flag = _LISTS.get(one.method, ("", ""))
    declared = evidence.capabilities.get(kind)
    if kind and not (isinstance(declared, dict) and declared.get(flag) is True):
        yield _fault(f"{one.method} was sent, and {kind}.{flag} is not declared", one)


@rule("server-messages.modern-changes", 3, gate=True, since=FIRST_MODERN, over=_messages(lifecycle="modern"),
      statement="In the per-request lifecycle, changes are sent only to clients that listen.",
      source="MCP basic/patterns/subscriptions: notifications are sent on the listening stream only",
      hint="send changes only to streams that subscriptions/listen opened")  # fmt: skip
def _modern_news(one: ServerMessage) -> Iterator[Fault]:
    if one.method in _LISTS or one.method == _UPDATED:
        yield _fault(f"{one.method} was sent to a client that does not listen", one)


@rule("server-messages.resource-updates", 3, gate=True, until=LATEST_HANDSHAKE, over=_messages(lifecycle="legacy", method=_UPDATED),
      statement="Updates of a resource are sent only to its subscribers, until they unsubscribe.",
      source="MCP server/resources, Subscriptions",
      hint="store the subscribers of each URI")  # fmt: skip
def _updates(one: ServerMessage, evidence: Evidence) -> Iterator[Fault]:
    asked = evidence.probes.get("subscribe")
    subscribed = asked.params.get("uri") if asked else None
    ended = evidence.probes.get("unsubscribe")
    if one.params.get("uri") != subscribed:
        yield _fault(f"an update of {one.params.get('uri')!r} was sent, but no client subscribed to it", one)
    elif ended is not None and ended.result is not None and (one.during or {}).get("method") == "tools/call":
        yield _fault(f"an update of {subscribed!r} was sent after the client unsubscribed", one)


@rule("server-messages.progress-token", 3, gate=True, over=_messages(method=_PROGRESS),
      statement="Progress is reported with the token of a request that is still running.",
      source=("MCP basic/utilities/progress, Behavior Requirements: tokens must be active, and reports must stop "
              "after completion"),
      hint="send no progress without a progressToken, and none after the result")  # fmt: skip
def _progress_token(one: ServerMessage) -> Iterator[Fault]:
    if one.during is None:
        yield _fault("progress was reported after the request was answered", one)
        return
    wanted, token = progress_token(one.during), one.params.get("progressToken")
    if wanted is None or token != wanted or isinstance(token, str) is not isinstance(wanted, str):
        yield _fault(f"progress has the token {token!r}, but {wanted!r} was requested", one)


def _all_messages(evidence: Evidence) -> RuleSubjects[list[ServerMessage]] | RuleOutcome:
    sent = _sent(evidence)
    return sent if isinstance(sent, RuleOutcome) else RuleSubjects([sent], once=True)


@rule("server-messages.progress-increases", 3, gate=True, over=_all_messages,
      statement="Progress is a number that grows with each report.",
      source="MCP basic/utilities/progress, Progress Notifications: the value must increase",
      hint="report only progress that is greater than the last value")  # fmt: skip
def _progress_grows(sent: list[ServerMessage]) -> Iterator[Fault]:
    last: dict[str, float] = {}
    for one in sent:
        if one.method != _PROGRESS:
            continue
        token, value = repr(one.params.get("progressToken")), one.params.get("progress")
        if not isinstance(value, int | float) or isinstance(value, bool):
            yield _fault(f"progress is {value!r}, not a number", one)
        elif token in last and value <= last[token]:
            yield _fault(f"progress went from {_cut(last[token])} to {_cut(value)}", one)
        else:
            last[token] = value


def _cut(value: float) -> str:
    return f"{value!r}"[:20] if abs(value) < 10**15 else "an excessively large number"


@rule("server-messages.cancelled", 3, gate=True, since=FIRST_MODERN,
      over=_messages(lifecycle="modern", method="notifications/cancelled"),
      statement="In the per-request lifecycle, notifications/cancelled is sent only for listening streams.",
      source="MCP basic/patterns/cancellation",
      hint="end the request with an error instead")  # fmt: skip
def _cancelled(one: ServerMessage) -> Iterator[Fault]:
    yield _fault("the server sends a cancellation, but the client has no listening stream", one)


def _canceled_calls(evidence: Evidence) -> RuleSubjects[list[CanceledCall]] | RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence, "modern")) is not None:
        return reason
    return (
        RuleSubjects([evidence.canceled]) if evidence.canceled else not_applicable("no call was slow enough to cancel")
    )


@rule("server-messages.after-cancellation", 2, since=FIRST_MODERN, over=_canceled_calls,
      statement="On stdio, the server sends no answer and no progress for a request after it read the cancellation.",
      source="MCP basic/transports/stdio: servers must not send any further messages for a canceled request",
      hint="remember the ids of canceled requests, and drop the answer if the work cannot be stopped")  # fmt: skip
def _after_cancellation(trials: list[CanceledCall]) -> Iterator[Fault]:
    if len(trials) > 1 and all(one.late for one in trials):
        last = trials[-1]
        kind = "an answer" if "method" not in last.late[-1] else "progress"
        words = (
            f"after the server answered a request that followed the cancellation, it sent {kind} for the canceled call"
        )
        yield Fault(words, last.tool, proof={"sent by the server": str(last.late[-1])[:1_000]})
