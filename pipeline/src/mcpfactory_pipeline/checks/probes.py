"""Table of probes: each row is a message to a server, and the expected answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal

from mcpfactory_pipeline.checks.evidence import Evidence, Lifecycle, Listing, Transport
from mcpfactory_pipeline.checks.exchange import (
    BATCHED,
    CAPABILITIES,
    LATEST_MODERN,
    LOG_LEVEL,
    META,
    MODERNS,
    VERSION,
    WireExchange,
    initialize_params,
    per_request_meta,
)
from mcpfactory_pipeline.checks.rule import Fault
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from mcpfactory_runtime.revisions import REVISIONS
from mcpfactory_runtime.types import Json

NOTHING: Final = "mcpfactory_nothing"  # no server has a tool or prompt with this name
UNKNOWN_REVISION: Final = "1999-01-01"  # no revision has this date
# The date is in the future, because servers may treat unknown earlier revisions as legacy revisions.
LATER_REVISION: Final = "2999-01-01"
NOTHING_TO_ASK: Final = "the server lists no entry that the probe could use"
_FURTHER_READS: Final = 30  # maximum number of further prompts, and of further resources

Expectation = Callable[[WireExchange, str], Iterator[Fault]]
"""Function that yields the faults of an answer; the text parameter describes the probe."""

ProbeSession = Literal[
    "handshake",  # a session of the newest handshake revision, before any other message
    "lists",  # the first session, after all lists were read
    "per-request",
    "per-request strays",  # only on stdio, for servers without the handshake
    "first contact",  # per-request messages of a client without an earlier message
    "unknown revision",
    "strays",  # invalid messages in the session of the unknown revision
    "before the handshake",
    "batches",  # a session of a revision with batches
    "batch initialize",
    "malformed",
]


@dataclass(frozen=True, slots=True)
class Probe:
    """One message to a server, its session, and the expected answer.

    `params` can be a function of the earlier evidence; the probe is skipped if the function returns None. `what`
    describes the probe in findings. If `lifecycle` is "", the probe applies to both lifecycles. The server must declare
    `capability`; after a leading `!`, the server must not declare it. A raw message is always sent, but it is judged
    only under this condition. `meta` replaces members of the per-request metadata; None removes a member.

    `raw` is sent unchanged: a JSON value, or text with surrogates for bytes that are not UTF-8. Except in session
    `handshake`, a valid request follows the raw message; its exchange is stored as `after`. If `answered` is set, both
    messages must be answered before the next probe.
    """

    name: str
    session: ProbeSession
    method: str = ""
    params: Json | Callable[[Evidence], Json | None] = field(default_factory=dict)
    what: str = ""
    expects: Expectation | None = None
    lifecycle: Lifecycle | Literal[""] = "legacy"
    capability: str = ""
    transport: Transport | Literal[""] = ""
    meta: Json = field(default_factory=dict)
    raw: Any = None
    answered: bool = False
    after: str = "after-odd"

    def suits(self, capabilities: Mapping[str, Any]) -> bool:
        """Return True if the probe applies to a server with these capabilities."""
        return not self.capability or (
            (self.capability.removeprefix("!") in capabilities) is not self.capability.startswith("!")
        )

    def faults(self, exchange: WireExchange) -> Iterator[Fault]:
        """Yield how the answer differs from the expected answer."""
        return self.expects(exchange, self.what) if self.expects else iter(())


# --- expectations ---


def describe_answer(exchange: WireExchange) -> str:
    """Return a short description of the answer."""
    if exchange.code is not None:
        return f"error {exchange.code}"
    if exchange.result is not None:
        return "a result with isError" if exchange.result.get("isError") is True else "a result"
    return exchange.problem or "an answer with neither result nor error"


def error(*codes: int, tolerates: Literal["error", "failure", "result", "no result", ""] = "") -> Expectation:
    """Expect an error with one of these codes; another answer that `tolerates` allows has severity 1.

    `failure` tolerates a result with isError, and an error with any code, because the code is only in an example of the
    specification.
    """

    def expect(exchange: WireExchange, what: str) -> Iterator[Fault]:
        if exchange.code in codes:
            return
        kinds = {
            "error": exchange.error is not None,
            "failure": exchange.code is not None or (exchange.result is not None and exchange.failed),
            "result": exchange.result is not None,
            "no result": exchange.result is None,
        }
        words = f"expected error {' or '.join(map(str, codes))}, got {describe_answer(exchange)}"
        yield Fault(words, what, exchange, lesser=1 if kinds.get(tolerates) else None)

    return expect


def result(request: str) -> Expectation:
    """Expect any result; `request` describes the request in the finding."""

    def expect(exchange: WireExchange, what: str) -> Iterator[Fault]:
        if exchange.result is None:
            yield Fault(f"{request} got {describe_answer(exchange)}", what, exchange)

    return expect


def expect_no_answer(exchange: WireExchange, what: str) -> Iterator[Fault]:
    """Expect no answer. Over HTTP, the server may refuse the message: an error status, and an error without an id."""
    if exchange.received is not None and (exchange.status < 400 or not _is_error_without_id(exchange)):
        yield Fault(f"{what} got {describe_answer(exchange)}", what, exchange)


def expect_at_most_an_error(exchange: WireExchange, what: str) -> Iterator[Fault]:
    """Expect no answer. An error without an id is a fault of severity 1, because clients ignore it."""
    for fault in expect_no_answer(exchange, what):
        yield replace(fault, lesser=1 if _is_error_without_id(exchange) else None)


def _is_error_without_id(exchange: WireExchange) -> bool:
    return exchange.error is not None and (exchange.received or {}).get("id") is None


def expect_no_batch_answer(exchange: WireExchange, what: str) -> Iterator[Fault]:
    """Expect no answer to a batch; over HTTP, status 202."""
    if exchange.received is not None:
        yield Fault(f"a batch of {what} got {describe_answer(exchange)}", what, exchange)
    elif exchange.status not in (0, 202):
        yield Fault(f"a batch of {what} got status {exchange.status}, not 202", what, exchange)


# --- request parameters that depend on the lists ---


def _entries(evidence: Evidence, method: str, key: str) -> list[Json]:
    listing, found = evidence.lists.get(method), dict[str, Json]()
    for one in listing.items if listing else ():
        if isinstance(one, dict) and isinstance(one.get(key), str):
            found.setdefault(one[key], one)
    return list(found.values())


def _first_prompt(evidence: Evidence) -> tuple[str, list[Json]]:
    found = next(iter(_entries(evidence, "prompts/list", "name")), {})
    return str(found.get("name", "")), _arguments(found)


def _arguments(prompt: Json) -> list[Json]:
    declared = prompt.get("arguments")
    usable = [one for one in declared if isinstance(one, dict)] if isinstance(declared, list) else []
    return [one for one in usable if isinstance(one.get("name"), str)]


def _first_resource(evidence: Evidence) -> Json | None:
    listing = evidence.lists.get("resources/list")
    uri = next((item.get("uri") for item in listing.items if isinstance(item, dict)), None) if listing else None
    return {"uri": uri} if isinstance(uri, str) else None


def _prompt_params(name: str, arguments: list[Json]) -> Json:
    return {"name": name, "arguments": {one["name"]: "text" for one in arguments if one.get("required") is True}}


def _first_prompt_params(evidence: Evidence) -> Json | None:
    name, arguments = _first_prompt(evidence)
    return _prompt_params(name, arguments) if name else None


def further_reads(evidence: Evidence) -> list[tuple[str, Json]]:
    """Return (method, params) of requests for prompts and resources, except the first ones, which separate probes read.

    At most `_FURTHER_READS` items of each kind are read.
    """
    prompts = [
        ("prompts/get", _prompt_params(one["name"], _arguments(one)))
        for one in _entries(evidence, "prompts/list", "name")[1:]
    ]
    resources = [("resources/read", {"uri": one["uri"]}) for one in _entries(evidence, "resources/list", "uri")[1:]]
    return [*prompts[:_FURTHER_READS], *resources[:_FURTHER_READS]]


def prompts_with_optional_arguments(evidence: Evidence) -> list[tuple[WireExchange, Json]]:
    """Return the `prompts/get` requests without optional arguments that failed, and params with all arguments."""
    prompts = {one["name"]: _arguments(one) for one in _entries(evidence, "prompts/list", "name")}
    made = (evidence.probes.get("get-prompt"), *evidence.later_reads)
    failed = [one for one in made if one is not None and one.method == "prompts/get" and one.error is not None]
    return [
        (one, {"name": name, "arguments": {argument["name"]: "text" for argument in prompts[name]}})
        for one in failed
        if len(prompts.get(name := one.params.get("name"), ())) > len(one.params.get("arguments", ()))
    ]


def _without_arguments(evidence: Evidence) -> Json | None:
    name, arguments = _first_prompt(evidence)
    needed = [one for one in arguments if one.get("required") is True]
    return {"name": name, "arguments": {}} if name and needed else None


def _completion(evidence: Evidence) -> Json | None:
    name, arguments = _first_prompt(evidence)
    if not name or not arguments:
        return None
    return {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": arguments[0]["name"], "value": ""}}


def _completion_of_nothing(evidence: Evidence) -> Json | None:
    completion = _completion(evidence)
    return {"ref": completion["ref"]} if completion else None


def _no_handshake(evidence: Evidence) -> Json | None:
    """Return {} for servers without the handshake; others may serve a request without a revision to an older client."""
    return None if "legacy" in evidence.lifecycles else {}


def _subscription(evidence: Evidence) -> Json | None:
    return _subscribable(evidence, evidence.capabilities)


def _unknown_task(evidence: Evidence, operation: str) -> Json | None:
    declared = evidence.capabilities.get("tasks")
    needed = operation if operation in ("cancel", "list") else "requests"
    offered = isinstance(declared, dict) and needed in declared
    return {"cursor" if operation == "list" else "taskId": NOTHING} if offered else None


def _subscribable(evidence: Evidence, capabilities: Mapping[str, Any]) -> Json | None:
    resources, listed = capabilities.get("resources"), _entries(evidence, "resources/list", "uri")
    offered = isinstance(resources, dict) and resources.get("subscribe") is True
    return {"uri": listed[0]["uri"]} if offered and listed else None


# --- the table ---

_UNKNOWN: Final = {"name": NOTHING, "arguments": {}}
_UNKNOWN_URI: Final = {"uri": "mcpfactory://nothing/here"}
_UNKNOWN_MEMBERS: Final = {"mcpfactoryUnknown": 1, "_meta": {"mcpfactory.example/unknown": {"a": 1}}}
_UNKNOWN_COMPLETION: Final = {"ref": {"type": "ref/prompt", "name": NOTHING}, "argument": {"name": "a", "value": ""}}
_NO_REVISION: Final = {key: value for key, value in initialize_params().items() if key != "protocolVersion"}
_NEVER_ASKED: Final = "mcpfactory-never-asked"  # an id that no request has
_NOTIFICATION: Final = {"jsonrpc": "2.0", "method": "notifications/mcpfactory/nothing"}
_CANCELLATION: Final = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": _NEVER_ASKED}}
_RESPONSE: Final = {"jsonrpc": "2.0", "id": _NEVER_ASKED, "result": {}}
_ARRAY_PARAMS: Final = {"jsonrpc": "2.0", "id": "mcpfactory-array", "method": "tools/call", "params": []}
_SEPARATED: Final = {"mcpfactory.example/text": "a\u2028b\u2029c\u0085d \u00e9 \U0001f98a"}


def _unescaped(method: str, meta: Mapping[str, Any]) -> str:
    """Return a request with unescaped Unicode line separators in its metadata."""
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": {**_SEPARATED, **meta}}}
    return json.dumps(message, ensure_ascii=False)


_UNESCAPED: Final = _unescaped("tools/list", {})
_MODERN_UNESCAPED: Final = _unescaped("server/discover", per_request_meta())
_NOT_UTF_8: Final = '{"jsonrpc": "2.0", "id": "mcpfactory-bytes", "method": "ping", "params": {"mcpfactory": "\udcff"}}'
BATCH: Final = tuple({"jsonrpc": "2.0", "id": f"mcpfactory-{one}", "method": one} for one in ("ping", "nothing"))
"""The requests of a batch: one gets a result, the other one an error."""
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": "mcpfactory-hello",
    "method": "initialize",
    "params": initialize_params(max(BATCHED)),
}
_INVALID: Final = error(INVALID_PARAMS, tolerates="error")

_ROWS: Final = (
    Probe("ping", "handshake", raw={"jsonrpc": "2.0", "id": 0, "method": "ping"}),
    Probe("unknown-method", "handshake", "mcpfactory/nothing", {}, "unknown method",
          error(METHOD_NOT_FOUND, tolerates="error")),

    Probe("read-resource", "lists", "resources/read", _first_resource, lifecycle="", capability="resources"),
    Probe("unknown-tool", "lists", "tools/call", _UNKNOWN, "unknown tool",
          error(INVALID_PARAMS, tolerates="failure"), "", "tools"),
    Probe("invalid-cursor", "lists", "tools/list", {"cursor": "mcpfactory-no-such-cursor"}, "invalid cursor",
          error(INVALID_PARAMS, tolerates="result"), "", "tools"),
    Probe("unknown-members", "lists", "tools/list", _UNKNOWN_MEMBERS, "unknown members",
          result("tools/list with a member and metadata that the server does not know"), "", "tools"),
    Probe("list-again", "lists", "tools/list", lifecycle="", capability="tools"),
    Probe("unknown-resource", "lists", "resources/read", _UNKNOWN_URI,
          lifecycle="", capability="resources"),
    Probe("resource-uri", "lists", "resources/read", {"uri": 5}, "a number as URI", _INVALID, "", "resources"),
    Probe("subscribe", "lists", "resources/subscribe", _subscription, "resources/subscribe",
          result("resources/subscribe"), "legacy", "resources"),
    Probe("unsubscribe", "lists", "resources/unsubscribe", _subscription, "resources/unsubscribe",
          result("resources/unsubscribe"), "legacy", "resources"),
    Probe("get-prompt", "lists", "prompts/get", _first_prompt_params, lifecycle="", capability="prompts"),
    Probe("unknown-prompt", "lists", "prompts/get", _UNKNOWN, "unknown prompt", _INVALID, "", "prompts"),
    Probe("prompt-arguments", "lists", "prompts/get", _without_arguments, "missing argument", _INVALID, "", "prompts"),
    Probe("complete", "lists", "completion/complete", _completion, lifecycle="", capability="completions"),
    Probe("complete-unknown", "lists", "completion/complete", _UNKNOWN_COMPLETION,
          "completion of an unknown prompt", _INVALID, "", "completions"),
    Probe("complete-without-argument", "lists", "completion/complete", _completion_of_nothing,
          "completion without an argument", _INVALID, "", "completions"),
    Probe("complete-undeclared", "lists", "completion/complete", _UNKNOWN_COMPLETION,
          lifecycle="", capability="!completions"),
    Probe("unknown-level", "lists", "logging/setLevel", {"level": "loud"}, "unknown level",
          _INVALID, "legacy", "logging"),
    Probe("set-level", "lists", "logging/setLevel", {"level": "emergency"}, "logging/setLevel",
          result("logging/setLevel"), "legacy", "logging"),

    *(Probe(f"unknown-task-{one}", "lists", f"tasks/{one}", partial(_unknown_task, operation=one),
            f"tasks/{one} of an unknown task", _INVALID, "legacy", "tasks") for one in ("get", "result", "cancel")),
    Probe("unknown-task-cursor", "lists", "tasks/list", partial(_unknown_task, operation="list"),
          "unknown cursor of tasks/list", error(INVALID_PARAMS, tolerates="result"), "legacy", "tasks"),

    Probe("modern-no-capabilities", "per-request", "tools/list", {}, "request metadata",
          error(INVALID_PARAMS), "modern", "tools", meta={CAPABILITIES: None}),
    Probe("modern-no-revision", "per-request", "tools/list", _no_handshake, "request metadata without a revision",
          error(INVALID_PARAMS, tolerates="error"), "modern", "tools", "stdio", meta={VERSION: None}),
    Probe("modern-no-metadata", "per-request", "tools/list", _no_handshake, "request without metadata",
          error(INVALID_PARAMS, tolerates="error"), "modern", "tools", "stdio",
          meta={VERSION: None, CAPABILITIES: None, META + "clientInfo": None}),
    Probe("modern-unknown-version", "per-request", "tools/list", lifecycle="modern", meta={VERSION: LATER_REVISION}),
    Probe("modern-log-level", "per-request", "server/discover", lifecycle="modern", meta={LOG_LEVEL: "debug"}),
    Probe("modern-unknown-method", "per-request", "mcpfactory/nothing", {}, "unknown method",
          error(METHOD_NOT_FOUND, tolerates="error"), "modern"),
    Probe("modern-unknown-resource", "per-request", "resources/read", _UNKNOWN_URI, "unknown resource",
          lifecycle="modern", capability="resources"),
    Probe("modern-removed-method", "per-request", "ping", {}, "unknown method", error(METHOD_NOT_FOUND), "modern"),

    Probe("modern-unescaped-text", "per-request strays", raw=_MODERN_UNESCAPED, answered=True, what="unescaped text",
          expects=result("server/discover with unescaped line separators (U+2028, U+2029, U+0085) in a text"),
          lifecycle="modern"),
    Probe("modern-notification", "per-request strays", raw=_NOTIFICATION, what="a notification that no revision has",
          expects=expect_no_answer, lifecycle="modern"),
    Probe("modern-late-cancellation", "per-request strays", raw=_CANCELLATION, what="a cancellation of nothing",
          expects=expect_no_answer, lifecycle="modern"),

    Probe("modern-first", "first contact", "tools/list", {}, "first request", result("the first request of a client"),
          "modern", "tools", meta={META + "clientInfo": {"name": "mcpfactory-validate-first", "version": "1"}}),

    Probe("unknown-version", "unknown revision", "initialize", initialize_params(UNKNOWN_REVISION)),
    Probe("unescaped-text", "strays", raw=_UNESCAPED, answered=True, what="unescaped text", capability="tools",
          expects=result("tools/list with unescaped line separators (U+2028, U+2029, U+0085) in a text")),
    Probe("notification", "strays", raw=_NOTIFICATION, what="a notification that no revision has", expects=expect_no_answer),
    Probe("late-cancellation", "strays", raw=_CANCELLATION, what="a cancellation of nothing", expects=expect_no_answer),
    Probe("response", "strays", raw=_RESPONSE, what="an unsolicited response", expects=expect_at_most_an_error),
    Probe("array-params", "strays", raw=_ARRAY_PARAMS, answered=True, capability="tools"),
    Probe("not-json-rpc", "strays", raw={"mcpfactory": "no JSON-RPC message", "id": "mcpfactory-no-rpc"}, answered=True,
          what="no JSON-RPC message", expects=error(INVALID_REQUEST, tolerates="no result")),
    Probe("not-utf-8", "strays", raw=_NOT_UTF_8, after="after-not-utf-8"),

    Probe("early-ping", "before the handshake", "ping", {}, "ping", result("ping before initialize"), transport="stdio"),
    Probe("no-version", "before the handshake", "initialize", _NO_REVISION, "initialize without protocolVersion",
          error(INVALID_PARAMS, tolerates="no result"), transport="stdio"),

    Probe("batch", "batches", raw=[*BATCH, _NOTIFICATION], answered=True),
    Probe("batch-notifications", "batches", raw=[_NOTIFICATION] * 2, what="notifications", expects=expect_no_batch_answer),
    Probe("batch-responses", "batches", raw=[_RESPONSE], what="responses", expects=expect_no_batch_answer),
    Probe("batch-empty", "batches", raw=[], answered=True, what="empty batch", expects=error(INVALID_REQUEST)),
    Probe("batch-initialize", "batch initialize", raw=[_HELLO, BATCH[0]], answered=True, after=""),

    Probe("malformed", "malformed", raw='{"jsonrpc": "2.0", "id": 1, "method":', answered=True,
          lifecycle="", after="after-malformed"),
)  # fmt: skip

PROBES: Final[Mapping[str, Probe]] = {row.name: row for row in _ROWS}


def foreign_content_kinds(exchange: WireExchange, revision: str) -> list[str]:
    """Return the kinds of content in a call's result that exist only in other revisions."""
    content = (exchange.result or {}).get("content")
    kinds = [block.get("type") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    newest = REVISIONS[LATEST_MODERN].content
    return sorted(
        {kind for kind in kinds if isinstance(kind, str) and kind in newest and kind not in REVISIONS[revision].content}
    )


def subscription_filters(evidence: Evidence, capabilities: Any) -> list[Json]:
    """Return filters for streams: two, or three if the server declares resources.

    The first and the third filter request the same kind of notification, which must arrive on both streams.
    """
    capabilities = capabilities if isinstance(capabilities, dict) else {}
    watched = _subscribable(evidence, capabilities)
    resources = {"resourcesListChanged": True} if "resources" in capabilities else {}
    subscribed = {"resourceSubscriptions": [watched["uri"]]} if watched else {}
    tools = {"toolsListChanged": True, **resources, **subscribed}
    filters: list[Json] = [tools, {"promptsListChanged": True}, resources]
    return [one for one in filters if one]


def newest_common_revision(discover: WireExchange) -> str:
    """Return the newest per-request revision that the server and the checks support; "" if none is shared."""
    supported = (discover.result or {}).get("supportedVersions")
    data = (discover.error or {}).get("data")
    # The data of the error "unsupported version" lists versions (basic/versioning).
    if supported is None and isinstance(data, dict):
        supported = data.get("supported")
    return max((name for name in MODERNS if isinstance(supported, list) and name in supported), default="")


LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Map each list method to the member of the result that contains the entries."""

_MAX_PAGES: Final = 100


async def read_all_pages(method: str, ask: Callable[[str, Json], Awaitable[WireExchange]], member: str = "") -> Listing:
    """Return all entries of a list; if they are incomplete, also return the reason.

    `ask` sends a method with params. `member` has the entries of a page (default: as in `LISTS`).
    """
    member = member or LISTS[method]
    items: list[Any] = []
    exchanges: list[WireExchange] = []
    cursors: set[str] = set()
    params: Json = {}
    problem = ""
    while True:
        exchange = await ask(method, params)
        exchanges.append(exchange)
        page = (exchange.result or {}).get(member)
        if not isinstance(page, list):
            problem = exchange.problem or f"{method} was not answered with a list of {member}"
            break
        if page not in [(earlier.result or {}).get(member) for earlier in exchanges[:-1]]:
            items += page  # leave out repeated pages, because some servers ignore the cursor
        cursor = (exchange.result or {}).get("nextCursor")
        if cursor is None:
            break
        if not isinstance(cursor, str) or cursor in cursors or len(exchanges) >= _MAX_PAGES:
            problem = f"the pages do not end: nextCursor {cursor!r} after {len(exchanges)} pages"
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    return Listing(method, tuple(items), tuple(exchanges), problem)
