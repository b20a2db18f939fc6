"""Probes other than tool calls: lists, resources, prompts, and malformed requests."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Era, Evidence, Listing
from mcpfactory_pipeline.checks.exchange import BATCHED, LATEST_MODERN, MODERNS, WireExchange, initialize_params
from mcpfactory_runtime.revisions import REVISIONS
from mcpfactory_runtime.types import Json

NOTHING: Final = "mcpfactory_nothing"  # no server has a thing of this name
NOWHERE: Final = "mcpfactory://nothing/here"
_FURTHER_READS: Final = 30  # prompts, and resources, that are got after the first


def _entries(seen: Evidence, method: str, key: str) -> list[Json]:
    listing, found = seen.lists.get(method), dict[str, Json]()
    for one in listing.items if listing else ():
        if isinstance(one, dict) and isinstance(one.get(key), str):
            found.setdefault(one[key], one)
    return list(found.values())


def _first_prompt(seen: Evidence) -> tuple[str, list[Json]]:
    found = next(iter(_entries(seen, "prompts/list", "name")), {})
    return str(found.get("name", "")), _arguments(found)


def _arguments(prompt: Json) -> list[Json]:
    declared = prompt.get("arguments")
    usable = [one for one in declared if isinstance(one, dict)] if isinstance(declared, list) else []
    return [one for one in usable if isinstance(one.get("name"), str)]


@dataclass(frozen=True, slots=True)
class WireQuestion:
    """Probe with one request. `params` returns its parameters, or None to skip it; `era` "" means both lifecycles.

    `capability` must be declared by the server for the probe to apply; with a leading `!` it must not be declared.
    """

    probe: str
    method: str
    params: Callable[[Evidence], Json | None]
    capability: str = ""
    era: Era | str = ""

    def suits(self, capabilities: Mapping[str, Any]) -> bool:
        """Return True if the probe applies to a server with these capabilities."""
        return (self.capability.removeprefix("!") in capabilities) is not self.capability.startswith("!")


def _always(**params: Any) -> Callable[[Evidence], Json | None]:
    return lambda _seen: params


def _filled(seen: Evidence) -> Json | None:
    name, arguments = _first_prompt(seen)
    return _got(name, arguments) if name else None


def _got(name: str, arguments: list[Json]) -> Json:
    """Return the params to get a prompt: a word for each required argument."""
    return {"name": name, "arguments": {one["name"]: "text" for one in arguments if one.get("required") is True}}


def further_reads(seen: Evidence) -> list[tuple[str, Json]]:
    """Return (method, parameters) for the prompts and resources after the first ones, which have separate probes.

    They serve rules about texts shown to a model; each kind is limited to `_FURTHER_READS`.
    """
    prompts = [
        ("prompts/get", _got(one["name"], _arguments(one))) for one in _entries(seen, "prompts/list", "name")[1:]
    ]
    resources = [("resources/read", {"uri": one["uri"]}) for one in _entries(seen, "resources/list", "uri")[1:]]
    return [*prompts[:_FURTHER_READS], *resources[:_FURTHER_READS]]


def _unfilled(seen: Evidence) -> Json | None:
    name, arguments = _first_prompt(seen)
    needed = [one for one in arguments if one.get("required") is True]
    return {"name": name, "arguments": {}} if name and needed else None


def _completed(seen: Evidence) -> Json | None:
    name, arguments = _first_prompt(seen)
    if not name or not arguments:
        return None
    return {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": arguments[0]["name"], "value": ""}}


def _unargued(seen: Evidence) -> Json | None:
    completed = _completed(seen)
    return {"ref": completed["ref"]} if completed else None


def _watched(seen: Evidence) -> Json | None:
    return _subscribable(seen, seen.capabilities)


def _subscribable(seen: Evidence, capabilities: Mapping[str, Any]) -> Json | None:
    resources, listed = capabilities.get("resources"), _entries(seen, "resources/list", "uri")
    offered = isinstance(resources, dict) and resources.get("subscribe") is True
    return {"uri": listed[0]["uri"]} if offered and listed else None


QUESTIONS: Final[tuple[WireQuestion, ...]] = (
    WireQuestion(
        "unknown-members",
        "tools/list",
        _always(mcpfactoryUnknown=1, _meta={"mcpfactory.example/unknown": {"a": 1}}),
        "tools",
    ),
    WireQuestion("list-again", "tools/list", _always(), "tools"),
    WireQuestion("unknown-resource", "resources/read", _always(uri=NOWHERE), "resources"),
    WireQuestion("resource-uri", "resources/read", _always(uri=5), "resources"),
    WireQuestion("subscribe", "resources/subscribe", _watched, "resources", "legacy"),
    WireQuestion("unsubscribe", "resources/unsubscribe", _watched, "resources", "legacy"),
    WireQuestion("get-prompt", "prompts/get", _filled, "prompts"),
    WireQuestion("unknown-prompt", "prompts/get", _always(name=NOTHING, arguments={}), "prompts"),
    WireQuestion("prompt-arguments", "prompts/get", _unfilled, "prompts"),
    WireQuestion("complete", "completion/complete", _completed, "completions"),
    WireQuestion(
        "complete-unknown",
        "completion/complete",
        _always(ref={"type": "ref/prompt", "name": NOTHING}, argument={"name": "a", "value": ""}),
        "completions",
    ),
    WireQuestion("complete-nothing", "completion/complete", _unargued, "completions"),
    WireQuestion(
        "complete-undeclared",
        "completion/complete",
        _always(ref={"type": "ref/prompt", "name": NOTHING}, argument={"name": "a", "value": ""}),
        "!completions",
    ),
    WireQuestion("unknown-level", "logging/setLevel", _always(level="loud"), "logging", "legacy"),
    WireQuestion("set-level", "logging/setLevel", _always(level="emergency"), "logging", "legacy"),
)


@dataclass(frozen=True, slots=True)
class OddMessage:
    """A text that a server must bear: what is sent, and whether an answer to it is waited for."""

    probe: str
    message: Any = field(hash=False)
    answered: bool = False
    after: str | None = "after-odd"  # the ping behind it, None where the server may end of it
    raw: str = ""  # what goes over the wire instead, with surrogates for bytes that are no UTF-8

    @property
    def text(self) -> str:
        """Return the text to send."""
        return self.raw or json.dumps(self.message)


ODD: Final[tuple[OddMessage, ...]] = (
    OddMessage("notification", {"jsonrpc": "2.0", "method": "notifications/mcpfactory/nothing"}),
    OddMessage(
        "late-cancel",
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "mcpfactory-never-asked"}},
    ),
    OddMessage("response", {"jsonrpc": "2.0", "id": "mcpfactory-never-asked", "result": {}}),
    OddMessage(
        "array-params", {"jsonrpc": "2.0", "id": "mcpfactory-array", "method": "tools/call", "params": []}, True
    ),
    OddMessage("not-rpc", {"mcpfactory": "no JSON-RPC message", "id": "mcpfactory-no-rpc"}, True),
    OddMessage(
        "not-utf-8",
        None,
        after="after-not-utf-8",
        raw='{"jsonrpc": "2.0", "id": "mcpfactory-bytes", "method": "ping", "params": {"mcpfactory": "\udcff"}}',
    ),
)


_PINGS: Final = tuple({"jsonrpc": "2.0", "id": f"mcpfactory-{one}", "method": "ping"} for one in ("one", "two"))
_HELLO: Final = {"jsonrpc": "2.0", "id": "mcpfactory-hello", "method": "initialize"}

# Arrays, in a session of the one revision that has them.
BATCHES: Final[tuple[OddMessage, ...]] = (
    OddMessage("batch", [*_PINGS, ODD[0].message], True),
    OddMessage("batch-notifications", [ODD[0].message, ODD[0].message]),
    OddMessage("batch-responses", [{"jsonrpc": "2.0", "id": "mcpfactory-never-asked", "result": {}}]),
    OddMessage("batch-empty", [], True),
)

# And one before there is a session.
BATCH_INITIALIZE: Final = OddMessage(
    "batch-initialize", [{**_HELLO, "params": initialize_params(max(BATCHED))}, _PINGS[0]], True, None
)


def foreign_kinds(exchange: WireExchange, revision: str) -> list[str]:
    """Return the kinds of content in a call's result that belong only to other revisions."""
    content = (exchange.result or {}).get("content")
    kinds = [block.get("type") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    newest = REVISIONS[LATEST_MODERN].content
    return sorted(
        {kind for kind in kinds if isinstance(kind, str) and kind in newest and kind not in REVISIONS[revision].content}
    )


def listening_filters(seen: Evidence, capabilities: Any) -> tuple[Json, Json]:
    """Return the filters of two streams, which have nothing in common; each asks for something that the server declares, if anything."""
    watched = _subscribable(seen, capabilities if isinstance(capabilities, dict) else {})
    return (
        {"toolsListChanged": True, **({"resourceSubscriptions": [watched["uri"]]} if watched else {})},
        {"promptsListChanged": True},
    )


def newest_common(discover: WireExchange) -> str:
    """Return the newest per-request revision that both the server and we support, or "" if not found."""
    supported = (discover.result or {}).get("supportedVersions")
    data = (discover.error or {}).get("data")
    if supported is None and isinstance(
        data, dict
    ):  # of the error for a version that it does not have (basic/versioning)
        supported = data.get("supported")
    return max((name for name in MODERNS if isinstance(supported, list) and name in supported), default="")


NOTHING_TO_ASK: Final = "the server lists nothing that it could be asked about"
UNKNOWN_REVISION: Final = "1999-01-01"  # no revision has this date
LATER_REVISION: Final = "2999-01-01"  # as a client of the future names it; no client of the per-request revisions names an earlier one than these
NO_REVISION: Final = {key: value for key, value in initialize_params().items() if key != "protocolVersion"}


LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""The methods that list something, with the member of the result that holds it."""

_MAX_PAGES: Final = 100


async def list_pages(method: str, ask: Callable[[Json], Awaitable[WireExchange]]) -> Listing:
    """Return all entries that a method of `LISTS` lists, and the reason if the list is incomplete.

    `ask` sends the method with parameters (MCP, pagination).
    """
    items: list[Any] = []
    exchanges: list[WireExchange] = []
    cursors: set[str] = set()
    params: Json = {}
    problem = ""
    while True:
        exchange = await ask(params)
        exchanges.append(exchange)
        page = (exchange.result or {}).get(LISTS[method])
        if not isinstance(page, list):
            problem = exchange.problem or f"{method} was not answered with a list of {LISTS[method]}"
            break
        if page not in [(earlier.result or {}).get(LISTS[method]) for earlier in exchanges[:-1]]:
            items += page  # a server that ignores the cursor sends the same page for ever
        cursor = (exchange.result or {}).get("nextCursor")
        if cursor is None:
            break
        if not isinstance(cursor, str) or cursor in cursors or len(exchanges) >= _MAX_PAGES:
            problem = f"the pages do not end: nextCursor {cursor!r} after {len(exchanges)} pages"
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    return Listing(method, tuple(items), tuple(exchanges), problem)
