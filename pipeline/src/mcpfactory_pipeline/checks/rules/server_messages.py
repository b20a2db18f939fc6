"""Rules over what a server sends without being asked: notifications, and requests to the client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Evidence, Unasked
from mcpfactory_pipeline.checks.exchange import FIRST_MODERN, LATEST_HANDSHAKE
from mcpfactory_pipeline.checks.rule import Check, Fault, Rule, first_each, not_applicable, rule_outcome
from mcpfactory_pipeline.checks.rules.legacy import era_or_reason
from mcpfactory_pipeline.checks.transport.conversation import progress_token
from mcpfactory_runtime.revisions import REVISIONS

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_LISTS: Final = {
    f"notifications/{kind}/list_changed": (kind, "listChanged") for kind in ("tools", "resources", "prompts")
}
_CLIENT_FEATURES: Final = frozenset({"sampling/createMessage", "elicitation/create", "roots/list"})
_KNOWN: Final = frozenset(name for revision in REVISIONS.values() for name in revision.notifications)


_LOG: Final = "notifications/message"
_PROGRESS: Final = "notifications/progress"
_UPDATED: Final = "notifications/resources/updated"


def _over_all(find: Callable[[Evidence, list[Unasked]], Iterable[Fault]], era: str = "") -> Check:
    def check(evidence: Evidence) -> Any:
        sent = [one for one in evidence.unasked if not era or one.modern == (era == "modern")]
        if (reason := era_or_reason(evidence, era)) is not None:
            return reason
        if not sent:
            return not_applicable("the server sent nothing that it was not asked for")
        return rule_outcome(1, first_each(find(evidence, sent)))

    return check


def _each(find: Callable[[Evidence, Unasked], str], era: str = "") -> Check:
    """Return a check of each unsolicited server message; `find` returns its problem, or ""."""
    return _over_all(lambda evidence, sent: (_fault(words, one) for one in sent if (words := find(evidence, one))), era)


def _fault(words: str, one: Unasked) -> Fault:
    proof = {"sent by the server": str(one.message)[:1_000], "while it had to answer": str(one.during)[:1_000]}
    return Fault(words, one.method, proof=proof)


def _requests(_evidence: Evidence, one: Unasked) -> str:
    if "id" in one.message and one.method in _CLIENT_FEATURES:
        return f"the server requests {one.method}, and the client declared no such capability"
    return ""


def _early(_evidence: Evidence, one: Unasked) -> str:
    if "id" in one.message and one.method != "ping" and not one.initialized:
        return f"the server requests {one.method} before it was told notifications/initialized"
    return ""


def _modern_requests(_evidence: Evidence, one: Unasked) -> str:
    return (
        f"the server sends a request, {one.method}, to a client of the per-request lifecycle"
        if "id" in one.message
        else ""
    )


def _shape(_evidence: Evidence, one: Unasked) -> str:
    if "params" in one.message and not isinstance(one.message["params"], dict):
        return f"the params of {one.method} are no object"
    if "id" in one.message and one.method.startswith("notifications/"):
        return f"{one.method} is a notification and has an id"
    number = one.message.get("id", "")
    fits = isinstance(number, str | int) and not isinstance(number, bool)
    return "" if fits else f"the id of the request {one.method} is neither a text nor a whole number"


def _known(_evidence: Evidence, one: Unasked) -> str:
    unknown = one.method.startswith("notifications/") and one.method not in _KNOWN and "id" not in one.message
    return f"no revision has the notification {one.method}" if unknown else ""


def _log_declared(evidence: Evidence, one: Unasked) -> str:
    wrong = one.method == _LOG and "logging" not in evidence.capabilities
    return "the server sends log messages, and does not declare logging" if wrong else ""


def _log_shape(_evidence: Evidence, one: Unasked) -> str:
    if one.method != _LOG or (one.params.get("level") in LEVELS and "data" in one.params):
        return ""
    level = one.params.get("level")
    return "a log message has no data" if level in LEVELS else f"a log message has the level {level!r}"


def _log_level(evidence: Evidence, one: Unasked) -> str:
    asked, level = evidence.probes.get("set-level"), one.params.get("level")
    if asked is None or asked.result is None or one.method != _LOG or level not in LEVELS[:-1]:
        return ""
    # Tool calls come after the level was set in the same session.
    during = one.during is not None and any(call.exchange.sent == one.during for call in evidence.calls)
    return f"emergency was asked for, and a message of level {level} came" if during else ""


def _modern_logs(_evidence: Evidence, one: Unasked) -> str:
    return "a log message was sent for a request that named no log level" if one.method == _LOG else ""


def _changes_declared(evidence: Evidence, one: Unasked) -> str:
    kind, flag = _LISTS.get(one.method, ("", ""))
    declared = evidence.capabilities.get(kind)
    fits = not kind or (isinstance(declared, dict) and declared.get(flag) is True)
    return "" if fits else f"{one.method} was sent, and {kind}.{flag} is not declared"


def _modern_news(_evidence: Evidence, one: Unasked) -> str:
    news = one.method in _LISTS or one.method == _UPDATED
    return f"{one.method} was sent to a client that does not listen" if news else ""


def _updates(evidence: Evidence, one: Unasked) -> str:
    asked = evidence.probes.get("subscribe")
    subscribed = (asked.sent.get("params") or {}).get("uri") if asked and isinstance(asked.sent, dict) else None
    strange = one.method == _UPDATED and one.params.get("uri") != subscribed
    return f"an update of {one.params.get('uri')!r} was sent, to which nobody subscribed" if strange else ""


def _progress_token(_evidence: Evidence, one: Unasked) -> str:
    if one.method != _PROGRESS:
        return ""
    if one.during is None:
        return "progress was reported after the request was answered"
    wanted, token = progress_token(one.during), one.params.get("progressToken")
    fits = wanted is not None and token == wanted
    return "" if fits else f"progress came with the token {token!r}, {wanted!r} was asked for"


def _progress_grows(_evidence: Evidence, sent: list[Unasked]) -> Iterator[Fault]:
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
    return f"{value!r}"[:20] if abs(value) < 10**15 else "a number beyond all measure"


def _cancelled(_evidence: Evidence, one: Unasked) -> str:
    wrong = one.method == "notifications/cancelled"
    return "the server cancels, and no stream of the client listens" if wrong else ""


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="conduct.requests", severity=5, gate=True, until=LATEST_HANDSHAKE, check=_each(_requests, "legacy"),
        statement="The server sends only requests that match the declared capabilities of the client.",
        source="MCP basic/lifecycle, Operation: both sides must only use capabilities that were negotiated",
        hint="check the client's capabilities before you ask for sampling, roots or elicitation",
    ),
    Rule(
        id="conduct.early", severity=2, until=LATEST_HANDSHAKE, check=_each(_early, "legacy"),
        statement="Before notifications/initialized, the server sends no request except ping.",
        source="MCP basic/lifecycle, Initialization: the server should not send other requests",
        hint="wait for notifications/initialized",
    ),
    Rule(
        id="conduct.modern-requests", severity=5, gate=True, check=_each(_modern_requests, "modern"),
        statement="In the per-request lifecycle, the server sends no requests.",
        source="MCP basic/transports: the server must not send JSON-RPC requests; basic/patterns/mrtr says how it asks",
        hint='return a result with "resultType": "input_required" to ask for input', since=FIRST_MODERN,
    ),
    Rule(
        id="conduct.shape", severity=3, gate=True, check=_each(_shape),
        statement=("Unsolicited messages of the server are JSON-RPC requests or notifications: params are an object, and "
                   "notifications have no id."),
        source="MCP basic/index, Messages",
        hint="validate every message that you send against the schema of the protocol",
    ),
    Rule(
        id="conduct.known", severity=1, check=_each(_known),
        statement="The server sends only notifications that an MCP revision defines.",
        source="MCP schema, ServerNotification",
        hint="use a name outside notifications/ for custom notifications; clients drop unknown ones",
    ),
    Rule(
        id="conduct.log-declared", severity=2, until=LATEST_HANDSHAKE, check=_each(_log_declared, "legacy"),
        statement="A server that sends log messages declares logging.",
        source=("MCP server/utilities/logging, Capabilities: it must declare the capability (clients that do not "
                "expect the messages drop them, so it weighs 2)"),
        hint='declare "logging": {} or log to stderr',
    ),
    Rule(
        id="conduct.log-shape", severity=3, gate=True, check=_each(_log_shape),
        statement="Log messages have data and one of the eight levels.",
        source="MCP server/utilities/logging, Log Levels; schema, LoggingMessageNotification",
        hint=f"levels: {', '.join(LEVELS)}",
    ),
    Rule(
        id="conduct.log-level", severity=3, gate=True, until=LATEST_HANDSHAKE, check=_each(_log_level, "legacy"),
        statement="After logging/setLevel, only messages of that level and above are sent.",
        source="MCP server/utilities/logging, Setting Log Level",
        hint="compare the level of each message with the requested level",
    ),
    Rule(
        id="conduct.modern-logs", severity=3, gate=True, since=FIRST_MODERN, check=_each(_modern_logs, "modern"),
        statement="No log messages are sent for a request without a log level.",
        source="MCP server/utilities/logging: without the metadata the server must not send log messages",
        hint="read the log level from the request's metadata",
    ),
    Rule(
        id="conduct.changes-declared", severity=2, until=LATEST_HANDSHAKE, check=_each(_changes_declared, "legacy"),
        statement="A server that reports changed lists declares listChanged.",
        source="MCP server/tools, server/resources and server/prompts, List Changed Notification",
        hint='declare {"listChanged": true}; otherwise clients that check the capability do not listen',
    ),
    Rule(
        id="conduct.modern-news", severity=3, gate=True, since=FIRST_MODERN, check=_each(_modern_news, "modern"),
        statement="In the per-request lifecycle, changes are sent only to clients that listen.",
        source="MCP basic/patterns/subscriptions: notifications are sent on the listening stream only",
        hint="send changes only to streams that subscriptions/listen opened",
    ),
    Rule(
        id="conduct.updates", severity=3, gate=True, until=LATEST_HANDSHAKE, check=_each(_updates, "legacy"),
        statement="Updates of a resource are sent only to its subscribers.",
        source="MCP server/resources, Subscriptions",
        hint="store the subscribers of each URI",
    ),
    Rule(
        id="conduct.progress-token", severity=3, gate=True, check=_each(_progress_token),
        statement="Progress is reported with the token of a request that is still running.",
        source=("MCP basic/utilities/progress, Behavior Requirements: tokens must be active, and reports must stop "
                "after completion"),
        hint="send no progress without a progressToken, and none after the result",
    ),
    Rule(
        id="conduct.progress-grows", severity=3, gate=True, check=_over_all(_progress_grows),
        statement="Progress is a number that grows with each report.",
        source="MCP basic/utilities/progress, Progress Notifications: the value must increase",
        hint="report only progress that is greater than the last value",
    ),
    Rule(
        id="conduct.cancelled", severity=3, gate=True, since=FIRST_MODERN, check=_each(_cancelled, "modern"),
        statement="In the per-request lifecycle, notifications/cancelled is sent only for listening streams.",
        source="MCP basic/patterns/cancellation",
        hint="end the request with an error instead",
    ),
)  # fmt: skip
