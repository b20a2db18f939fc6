"""Order of the probes sent to a server, and their sessions. Answers go into `Evidence`; nothing is evaluated here.

Sessions, each in a separate process on stdio:
1. the newest handshake revision: lists, probes, tool calls; restarted once if the server does not answer;
2. every older handshake revision: only `initialize`;
3. the per-request revision: discover, its probes, and all of 1 if the server supports no handshake;
4. an unknown revision, then messages that no client sends (`questions.ODD`);
5. requests before the handshake, when only ping is allowed;
6. half a message, after which the server must still answer.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from mcpfactory_pipeline.checks.call_plan import (
    PlannedCall,
    may_be_called,
    plan_calls,
    plan_changed,
    plan_others,
    plan_wrong,
    request_faults,
)
from mcpfactory_pipeline.checks.canaries import Bait, Temptation, tempt, tempt_templates
from mcpfactory_pipeline.checks.evidence import (
    Evidence,
    RecordedCall,
    RecordedTemptation,
    ServerProcess,
    Transport,
    sent_arguments,
)
from mcpfactory_pipeline.checks.exchange import (
    BATCHED,
    CAPABILITIES,
    HANDSHAKES,
    LATEST_HANDSHAKE,
    LATEST_MODERN,
    META,
    ValidationTarget,
    WireExchange,
    initialize_params,
    modern_meta,
)
from mcpfactory_pipeline.checks.probes import (
    BATCH_INITIALIZE,
    BATCHES,
    LATER_REVISION,
    LISTS,
    NO_REVISION,
    NOTHING_TO_ASK,
    ODD,
    QUESTIONS,
    UNKNOWN_REVISION,
    OddMessage,
    foreign_kinds,
    further_reads,
    list_pages,
    listening_filters,
    newest_common,
)
from mcpfactory_pipeline.checks.samples import arrival, tells_value
from mcpfactory_pipeline.checks.transport.conversation import Conversation, cancellation, printable
from mcpfactory_pipeline.checks.transport.http import HttpConversation
from mcpfactory_pipeline.checks.transport.http_probes import probe_http
from mcpfactory_pipeline.checks.transport.stdio import StdioConversation
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.stub import StubUpstream

_ANSWER: Final = 10.0  # seconds that one answer may take
_SLOWER: Final = 10  # times as long as the first answer an answer may take, where that is more
_STARTS: Final = 10  # starts of the server that the examination has
_TIRED: Final = 2.0  # the same, after three answers that did not come
_TEMPTED: Final = 3.0  # seconds for the answer to a bait
_OVER: Final = "the time for the examination was over"


Connect = Callable[[ValidationTarget, Mapping[str, str], str], Awaitable[Conversation | ServerProcess]]


async def _connect(target: ValidationTarget, environ: Mapping[str, str], purpose: str) -> Conversation | ServerProcess:
    if target.url is not None:
        return HttpConversation(target.url, purpose)
    return await StdioConversation.start(target.command or (), target.cwd, environ, purpose)


class Interview:
    """One examination of one server; `run` it once."""

    def __init__(
        self,
        target: ValidationTarget,
        *,
        timeout: float,
        environ: Mapping[str, str],
        secrets: Mapping[str, str],
        cases: list[dict[str, Any]] | None = None,
        stub: StubUpstream | None = None,
        examples: Sequence[Mapping[str, Any]] = (),
        connect: Connect | None = None,
        bait: Bait | None = None,
    ) -> None:
        self._target = target
        self._bait = bait
        self._connect = connect or _connect
        self._environ = environ
        self._cases = cases
        self._stub = stub
        self._examples = examples
        self._start_patience = max(timeout / 3, 1.0)
        self._deadline = time.monotonic() + timeout
        self._ids = itertools.count(1)
        self._unanswered = 0
        self._pace = 0.0  # seconds that the first answer took, with the start of the process
        self._modern = LATEST_MODERN  # the per-request revision that is spoken
        self._planned: list[tuple[PlannedCall, RecordedCall]] = []
        self._url = target.url or ""  # where redirects led to
        transport: Transport = "http" if target.url is not None else "stdio"
        self.seen = Evidence(transport=transport, secrets=secrets, with_cases=cases is not None)

    async def run(self) -> Evidence:
        """Ask everything that there is time for."""
        await self._newest_handshake()
        if self.seen.starts and self.seen.starts[0].answered:
            for revision in HANDSHAKES[:-1]:
                await self._older_handshake(revision)
        if any(start.answered or "could not be started" not in start.problem for start in self.seen.starts):
            await self._per_request()
        if "legacy" in self.seen.eras:
            await self._unknown_revision()
            await self._before_handshake()
        if self.seen.eras:
            await self._malformed_message()
            if self._target.url is not None and self._seconds_left() > 0:
                self.seen.http = await asyncio.to_thread(probe_http, self._url, self.seen.eras, self._modern)
        else:
            self.seen.missing.setdefault("*", "the server did not answer")
        spoken = {str((one.result or {}).get("protocolVersion")) for one in self.seen.handshakes.values()}
        modern = [self._modern] if "modern" in self.seen.eras else []
        self.seen.revisions = (*(revision for revision in HANDSHAKES if revision in spoken), *modern)
        return self.seen

    # --- the sessions ---

    async def _newest_handshake(self) -> None:
        """Silence is believed the second time: a loaded machine can keep a sound server silent once, whose rest would be misjudged."""
        await self._first_session()
        hello = self.seen.handshakes.get(LATEST_HANDSHAKE)
        if hello is None or not hello.problem.startswith("no answer"):
            return
        self._deadline += 2 * self._start_patience
        self._unanswered = 0
        for seen in (self.seen.starts, self.seen.traffic, self.seen.unasked):
            seen.clear()
        await self._first_session(2 * self._start_patience)

    async def _first_session(self, patience: float = 0.0) -> None:
        revision = LATEST_HANDSHAKE
        async with self._session(f"session {revision}") as conversation:
            if conversation is None or not await self._initialize(conversation, revision, patience):
                return
            self.seen.eras.add("legacy")
            await self._probe(conversation, "ping", {"jsonrpc": "2.0", "id": "a text", "method": "ping"})
            await self._probe(conversation, "unknown-method", self._handshake_message("mcpfactory/nothing"))
            await self._examine(conversation, self._handshake_message)

    async def _older_handshake(self, revision: str) -> None:
        async with self._session(f"session {revision}") as conversation:
            if conversation is not None and await self._initialize(conversation, revision):
                agreed = (self.seen.handshakes[revision].result or {}).get("protocolVersion")
                if agreed == revision:
                    await self._call_older(conversation, revision)
                if agreed == revision and revision in BATCHED:
                    for odd in BATCHES:
                        if not await self._odd(conversation, odd) or self.seen.probes["batch"].received is None:
                            break

    async def _unknown_revision(self) -> None:
        """Send an unknown revision, then messages that no client sends, each followed by a ping."""
        async with self._session("unknown revision") as conversation:
            if conversation is None:
                return
            params = {**initialize_params(), "protocolVersion": UNKNOWN_REVISION}
            await self._probe(conversation, "unknown-version", self._handshake_message("initialize", params))
            if self._seconds_left() <= 0:
                return
            if self.seen.probes["unknown-version"].result is None and not await self._greet(conversation):
                return  # it refused, as it may, and nothing more in this session
            await conversation.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
            for odd in ODD:
                if not await self._odd(conversation, odd):
                    break

    async def _greet(self, conversation: Conversation) -> bool:
        message = self._handshake_message("initialize", initialize_params())
        return (await self._ask(conversation, message)).result is not None

    async def _before_handshake(self) -> None:
        """Send a ping and two bad `initialize` requests before the handshake; over HTTP, skip the ping.

        HTTP has no session before the handshake.
        """
        apart = self._target.url is not None
        if apart:
            self.seen.missing["early-ping"] = self.seen.missing["no-version"] = "there is no session before initialize"
        batch = self.seen.probes.get("batch")
        async with self._session("before the handshake") as conversation:
            if conversation is None:
                return
            if not apart:
                await self._probe(conversation, "early-ping", self._handshake_message("ping"))
                await self._probe(conversation, "no-version", self._handshake_message("initialize", NO_REVISION))
            if batch is not None and batch.received is not None:
                await self._odd(conversation, BATCH_INITIALIZE)

    async def _odd(self, conversation: Conversation, odd: OddMessage) -> bool:
        """Send one odd message and a ping; whether the server lives on."""
        if self._seconds_left() <= 0:
            self.seen.missing[odd.probe] = _OVER
            return False
        patience = max(min(_ANSWER, self._seconds_left()), 0.5)
        ping = self._handshake_message("ping")
        self.seen.probes[odd.probe], after = await conversation.send_raw(odd.text, ping, patience, wait=odd.answered)
        if after.received is None:
            problem = f"{after.problem} (after {printable(odd.text)})"
            after = replace(after, problem=problem)
        if odd.after is not None:
            self.seen.probes[odd.after] = after
        return after.received is not None

    async def _per_request(self) -> None:
        async with self._session(f"session {LATEST_MODERN}") as conversation:
            if conversation is None:
                return
            self.seen.discover = await self._ask(
                conversation, self._modern_message("server/discover"), self._start_patience
            )
            if (common := newest_common(self.seen.discover)) and common != self._modern:
                self._modern = common
                self.seen.discover = await self._ask(conversation, self._modern_message("server/discover"))
            result = self.seen.discover.result
            if result is None or "supportedVersions" not in result:
                return
            self.seen.eras.add("modern")
            first = "legacy" not in self.seen.eras
            if first:
                self._read_introduction(result)
            await self._modern_probes(conversation)
            if first:
                await self._examine(conversation, self._modern_message)
            else:
                await self._probe(conversation, "modern-list", self._modern_message("tools/list"))
            await self._listen(conversation, result)

    async def _listen(self, conversation: Conversation, result: Json) -> None:
        """Open two streams of notifications with different filters, then one with none that can be read."""
        if self._seconds_left() <= 0:
            self.seen.missing["listen"] = self.seen.missing["listen-malformed"] = _OVER
            return
        filters = listening_filters(self.seen, result.get("capabilities"))
        requests = [self._modern_message("subscriptions/listen", {"notifications": one}) for one in filters]
        self.seen.listens = await conversation.listen(requests, max(_TIRED, _SLOWER * self._pace))
        if any(stream.heard for stream in self.seen.listens):
            malformed = self._modern_message("subscriptions/listen", {"notifications": "all of them"})
            self.seen.probes["listen-malformed"] = await self._ask(conversation, malformed, _TIRED)
            await conversation.notify(cancellation(malformed))

    async def _malformed_message(self) -> None:
        async with self._session("malformed message", terminate=True) as conversation:
            if conversation is None:
                return
            if "legacy" in self.seen.eras:
                await self._initialize(conversation, LATEST_HANDSHAKE)
                after = self._handshake_message("ping")
            else:
                after = self._modern_message("server/discover")
            text = '{"jsonrpc": "2.0", "id": 1, "method":'
            patience = max(min(_ANSWER, self._seconds_left()), 0.5)
            malformed, alive = await conversation.send_raw(text, after, patience, wait=True)
            self.seen.probes["malformed"], self.seen.probes["after-malformed"] = malformed, alive

    async def _initialize(self, conversation: Conversation, revision: str, patience: float = 0.0) -> bool:
        message = self._handshake_message("initialize", initialize_params(revision))
        hello = await self._ask(conversation, message, patience or self._start_patience)
        self.seen.handshakes[revision] = hello
        if hello.result is None:
            return False
        if not self.seen.eras:
            self._read_introduction(hello.result)
        await conversation.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return True

    def _read_introduction(self, result: Json) -> None:
        capabilities, info = result.get("capabilities"), result.get("serverInfo")
        meta = result.get("_meta")
        if info is None and isinstance(meta, dict):
            info = meta.get(META + "serverInfo")
        self.seen.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.seen.server = (
            {key: info[key] for key in ("name", "title", "version") if key in info} if isinstance(info, dict) else {}
        )

    # --- probes within a session ---

    async def _modern_probes(self, conversation: Conversation) -> None:
        bare = self._modern_message("tools/list")
        del bare["params"]["_meta"][CAPABILITIES]
        await self._probe(conversation, "modern-no-capabilities", bare)
        unknown = self._modern_message("tools/list", version=LATER_REVISION)
        await self._probe(conversation, "modern-unknown-version", unknown)
        await self._probe(conversation, "modern-unknown-method", self._modern_message("mcpfactory/nothing"))
        await self._probe(conversation, "modern-retired", self._modern_message("ping"))

    async def _examine(self, conversation: Conversation, message: Any) -> None:
        for method in LISTS:
            if method == "tools/list" or method.split("/", maxsplit=1)[0] in self.seen.capabilities:
                await self._list(conversation, method, message)
        resources = self.seen.lists.get("resources/list")
        uri = next((item.get("uri") for item in resources.items if isinstance(item, dict)), None) if resources else None
        if isinstance(uri, str):
            await self._probe(conversation, "read-resource", message("resources/read", {"uri": uri}))
        if "tools" in self.seen.capabilities:
            await self._probe(
                conversation, "unknown-tool", message("tools/call", {"name": "mcpfactory_nothing", "arguments": {}})
            )
            await self._probe(
                conversation, "bad-cursor", message("tools/list", {"cursor": "mcpfactory-no-such-cursor"})
            )
        await self._ask_questions(conversation, message)
        await self._call_tools(conversation, message)
        await self._read_on(conversation, message)
        if self._bait is not None and self._stub is None:
            await self._tempt(self._bait, conversation, message)

    async def _tempt(self, bait: Bait, conversation: Conversation, message: Any) -> None:
        """Call tools that answered before, and read resources, with a bait as a value."""
        made = {call.tool: sent_arguments(call) for call in self.seen.calls if not call.failed}
        named = self.seen.named_tools
        allow_calls = self._target.allow_calls
        tools = [one for one in named if one[0] in made and may_be_called(one[0], named, allow_calls=allow_calls)]
        templates = self.seen.lists.get("resources/templates/list")
        for one in [*tempt(tools, made, bait), *tempt_templates(templates.items if templates else (), bait)]:
            if self._seconds_left() <= 0:
                self.seen.missing["temptations"] = _OVER
                return
            if one.confirms and not self._took(one):
                continue
            exchange = await self._ask(conversation, message(one.method, dict(one.params)), _TEMPTED)
            taken = bait.taken(one.kind, json.dumps(exchange.received, ensure_ascii=False))
            recorded = RecordedTemptation(one.kind, one.tool, one.argument, exchange, taken, one.confirms)
            self.seen.temptations.append(recorded)
            if exchange.problem.startswith("the server"):
                return

    def _took(self, one: Temptation) -> bool:
        """Return True if the same argument took a canary of this kind before."""
        about = (one.kind, one.tool, one.argument)
        return any(made.taken and (made.kind, made.where, made.argument) == about for made in self.seen.temptations)

    async def _ask_questions(self, conversation: Conversation, message: Any) -> None:
        """Ask what the table of questions has for this lifecycle and these capabilities."""
        for question in QUESTIONS:
            if question.era not in ("", *self.seen.eras) or not question.suits(self.seen.capabilities):
                continue
            params = question.params(self.seen)
            if params is None:
                self.seen.missing[question.probe] = NOTHING_TO_ASK
            else:
                await self._probe(conversation, question.probe, message(question.method, params))

    async def _read_on(self, conversation: Conversation, message: Any) -> None:
        """Get the prompts and read the resources after the first ones; once, in whichever lifecycle comes first."""
        for method, params in [] if self.seen.further else further_reads(self.seen):
            if self._seconds_left() <= 0:
                return
            exchange = await self._ask(conversation, message(method, params))
            self.seen.further.append(exchange)
            if exchange.problem.startswith("the server"):
                return

    async def _list(self, conversation: Conversation, method: str, message: Any) -> None:
        listing = await list_pages(method, lambda params: self._ask(conversation, message(method, params)))
        declared = method.split("/", maxsplit=1)[0] in self.seen.capabilities
        if declared or not listing.problem:
            self.seen.lists[method] = listing

    async def _call_tools(self, conversation: Conversation, message: Any) -> None:
        tools = self.seen.named_tools
        plan, self.seen.uncalled = plan_calls(
            tools, self._cases, examples=self._examples, allow_calls=self._target.allow_calls
        )
        unshown: list[PlannedCall] = []  # of whose answers by the API no value reached the model
        for planned in plan:
            last = self.seen.calls[-1].exchange if self.seen.calls else None
            if last is not None and last.problem.startswith("the server"):
                self.seen.uncalled[planned.tool] = f"before its turn, {last.problem}"
                continue
            if self._seconds_left() <= 0:
                self.seen.uncalled[planned.tool] = self.seen.missing["tools/call"] = _OVER
                continue
            params = _call_params(planned, next(self._ids))
            self.seen.calls.append(call := await self._call(planned, conversation, message("tools/call", params)))
            self._planned.append((planned, call))
            if planned.origin != "case" and call.exchange.problem.startswith("no answer"):
                self.seen.uncalled[planned.tool] = f"given up, {call.exchange.problem}: it may be slow by design"
            if not call.failed and not call.mismatches and tells_value(call) and arrival(call).nothing:
                unshown += plan_changed(planned)
        for planned in unshown:
            await self._call_again(planned, self.seen.changed, conversation, message)
        for planned in plan_others(tools, plan):
            await self._call_again(planned, self.seen.others, conversation, message)
        for planned in plan_wrong(tools, plan):
            await self._call_again(planned, self.seen.wrong, conversation, message)

    async def _call_again(
        self, planned: PlannedCall, kept: list[RecordedCall], conversation: Conversation, message: Any
    ) -> None:
        """Call a tool with other arguments, as long as the server lives, answers and there is time."""
        made = [*self.seen.calls, *self.seen.changed, *self.seen.others, *self.seen.wrong]
        answered = any(call.tool == planned.tool and not call.failed for call in made)
        if answered and not made[-1].exchange.problem and self._seconds_left() > 0:
            request = message("tools/call", {"name": planned.tool, "arguments": dict(planned.arguments)})
            kept.append(await self._call(planned, conversation, request))

    async def _call_older(self, conversation: Conversation, revision: str) -> None:
        """Call again what returned kinds of content that the revision does not have."""
        for planned, call in self._planned:
            if foreign_kinds(call.exchange, revision) and self._seconds_left() > 0:
                params = {"name": planned.tool, "arguments": dict(planned.arguments)}
                made = await self._call(planned, conversation, self._handshake_message("tools/call", params))
                self.seen.older.append(replace(made, title=revision))

    async def _call(self, planned: PlannedCall, conversation: Conversation, request: Json) -> RecordedCall:
        """Call a tool, and note what reached the stub upstream meanwhile."""
        if self._stub is None:
            return RecordedCall(planned.tool, await self._ask(conversation, request), planned.origin, planned.title)
        self._stub.expect(planned.case)
        requests, mismatches = len(self._stub.requests), len(self._stub.mismatches)
        exchange = await self._ask(conversation, request)
        sent, said = self._stub.requests[requests:], self._stub.mismatches[mismatches:]
        return RecordedCall(
            planned.tool,
            exchange,
            planned.origin,
            planned.title,
            tuple({"method": request.method, "path": request.path, "query": request.query} for request in sent),
            tuple(request_faults(planned, sent, said)),
            planned.question,
            (planned.case or {}).get("response"),
        )

    # --- messages and sessions ---

    def _handshake_message(self, method: str, params: Json | None = None) -> Json:
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params or {}}

    def _modern_message(self, method: str, params: Json | None = None, *, version: str = "") -> Json:
        given = params or {}
        meta = {"_meta": {**given.get("_meta", {}), **modern_meta(version or self._modern)}}
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": {**given, **meta}}

    async def _probe(self, conversation: Conversation, probe: str, message: Json) -> None:
        if self._seconds_left() <= 0:
            self.seen.missing[probe] = _OVER
        else:
            self.seen.probes[probe] = await self._ask(conversation, message)

    async def _ask(self, conversation: Conversation, message: Json, patience: float = _ANSWER) -> WireExchange:
        """Ask, and wait as long as this server takes on this machine: what took it a second may take it ten."""
        patience = max(patience, _SLOWER * self._pace)
        if self._unanswered >= 3:
            patience = min(patience, _TIRED + _SLOWER * self._pace)
        exchange = await conversation.ask(message, max(min(patience, self._seconds_left()), 0.5))
        self._unanswered += exchange.received is None
        self._keep_pace(exchange)
        return exchange

    def _keep_pace(self, exchange: WireExchange) -> None:
        """Learn from the first answer how slow server and machine are, and give the whole examination that much more time."""
        if self._pace == 0 and exchange.received is not None:
            self._pace = exchange.milliseconds / 1000
            self._deadline += _STARTS * self._pace

    @asynccontextmanager
    async def _session(self, purpose: str, *, terminate: bool = False) -> AsyncIterator[Conversation | None]:
        """Yield a conversation, or None if it cannot be opened; store its results at the end.

        With `terminate`, the session is ended by a signal.
        """
        if self._seconds_left() <= 0:
            self.seen.missing.setdefault("*", _OVER)
            yield None
            return
        conversation = await self._connect(self._target, self._environ, purpose)
        if isinstance(conversation, ServerProcess):
            self.seen.starts.append(conversation)
            self.seen.missing.setdefault("*", conversation.problem)
            yield None
            return
        try:
            yield conversation
        finally:
            self.seen.starts.append(await conversation.close(terminate=terminate))
            self.seen.traffic += conversation.exchanges
            self.seen.unasked += conversation.watch.unasked
            if isinstance(conversation, HttpConversation):
                self._url = conversation.url

    def _seconds_left(self) -> float:
        return self._deadline - time.monotonic()


def _call_params(planned: PlannedCall, token: int) -> Json:
    """Return the params of a call; it asks for progress, as clients do."""
    asked = {"progressToken": f"mcpfactory-progress-{token}"}
    return {"name": planned.tool, "arguments": dict(planned.arguments), "_meta": asked}
