"""Send the probes to a server, in a fixed order of sessions.

On stdio, each session has a separate process:
1. The newest handshake revision, with declared features: lists, probes, tool calls, and the start of a second process.
   The session is repeated once if the server does not answer.
2. Every older handshake revision: `initialize`, and the probes that only this revision has.
3. The per-request revision: `server/discover` and its probes. If the server has no handshake revision, the steps of
   session 1 follow. At the end, the client repeats requests for input, without capabilities and with a modified state.
4. An unknown revision: messages that no client sends, and requests for which the server asked for input.
5. Requests before the handshake, when the specification allows only ping.
6. Half a message, after which the server must still answer, and calls with extreme arguments.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mcpfactory_pipeline.checks.call_comparisons import CallComparer
from mcpfactory_pipeline.checks.call_plan import (
    PlannedCall,
    may_call_tool,
    plan_calls,
    plan_changed_responses,
    plan_extra_valid_calls,
    plan_invalid_calls,
    plan_second_guesses,
    plan_varied_calls,
    record_call,
)
from mcpfactory_pipeline.checks.canaries import Canaries
from mcpfactory_pipeline.checks.canary_calls import send_canaries
from mcpfactory_pipeline.checks.cancellations import cancel_slow_call
from mcpfactory_pipeline.checks.client_capabilities import (
    FEATURES,
    FEATURES_IN_CALLS,
    first_requests_by_target,
    needed_client_capability,
    params_without_meta,
)
from mcpfactory_pipeline.checks.corrected_arguments import correct_failed_calls
from mcpfactory_pipeline.checks.evidence import Evidence, Lifecycle, RecordedCall, Session
from mcpfactory_pipeline.checks.exchange import (
    BATCHED,
    HANDSHAKES,
    LATEST_HANDSHAKE,
    LATEST_MODERN,
    META,
    QUICK,
    ValidationTarget,
    initialize_params,
)
from mcpfactory_pipeline.checks.logged_calls import call_with_log_levels
from mcpfactory_pipeline.checks.modified_states import repeat_input_requests
from mcpfactory_pipeline.checks.probes import (
    LISTS,
    NOTHING_TO_ASK,
    PROBES,
    Probe,
    ProbeSession,
    foreign_content_kinds,
    further_reads,
    newest_common_revision,
    prompts_with_optional_arguments,
    read_all_pages,
)
from mcpfactory_pipeline.checks.requester import ANSWER, TIME_LIMIT, Requester
from mcpfactory_pipeline.checks.resource_templates import read_templated_resources
from mcpfactory_pipeline.checks.samples import (
    compare_with_answer,
    extra_valid_arguments,
    extreme_arguments,
    has_answer_value,
    seen_texts,
)
from mcpfactory_pipeline.checks.sandboxed_calls import call_in_sandbox
from mcpfactory_pipeline.checks.stream_probes import observe_streams
from mcpfactory_pipeline.checks.task_calls import observe_tasks
from mcpfactory_pipeline.checks.transport.argument_probes import probe_arguments
from mcpfactory_pipeline.checks.transport.authorization_probes import probe_authorization
from mcpfactory_pipeline.checks.transport.conversation import Conversation, escape_surrogates
from mcpfactory_pipeline.checks.transport.http import HttpConversation
from mcpfactory_pipeline.checks.transport.http_probes import HttpProbeSender, probe_http
from mcpfactory_pipeline.checks.transport.stdio import ServerProcess, StdioConversation
from mcpfactory_pipeline.checks.two_clients import observe_clients_at
from mcpfactory_pipeline.isolation.levels import Sandbox
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.stub import StubUpstream

_EXTREME: Final = 3.0  # seconds; timeout of the answer to extreme arguments
_MOST_AGAIN: Final = 2  # maximum number of tools to call again in the per-request lifecycle
_FURTHER: Final = 2.0  # seconds for all calls with further arguments


Connect = Callable[[ValidationTarget, Mapping[str, str], str], Awaitable[Conversation | Session]]


async def _connect(target: ValidationTarget, environ: Mapping[str, str], purpose: str) -> Conversation | Session:
    if target.url is not None:
        return HttpConversation(target.url, purpose, target.headers)
    return await StdioConversation.start(target.command or (), target.cwd, environ, purpose)


class ServerProber:
    """Examination of one server; it fills `evidence`. `run` it once.

    `cases` are called against the stub API `stub`. `examples` are calls for a server without `cases`. `sandbox`
    prevents side effects, so tools without `readOnlyHint` are called in it.
    """

    def __init__(
        self,
        target: ValidationTarget,
        evidence: Evidence,
        *,
        timeout: float,
        environ: Mapping[str, str],
        cases: list[dict[str, Any]] | None = None,
        stub: StubUpstream | None = None,
        examples: Sequence[Mapping[str, Any]] = (),
        connect: Connect | None = None,
        canaries: Canaries | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self.evidence = evidence
        self._target = target
        self._canaries = canaries
        self._sandbox = sandbox
        self._process: ServerProcess | None = None
        self._connect = connect or _connect
        self._environ = environ
        self._cases = cases
        self._stub = stub
        self._examples = examples
        self._start_patience = max(timeout / 3, 1.0)
        # If there are cases, declare no features, to observe tools that cannot ask a person.
        features = {} if cases is not None else FEATURES
        self._requests = Requester(timeout, features, evidence.dialogues)
        self._planned: list[tuple[PlannedCall, RecordedCall]] = []
        self._url = target.url or ""  # URL of the server after all redirects
        self._asking: list[tuple[str, Json]] = []  # a session's requests for which the server asked for input

    async def run(self) -> None:
        """Send all messages within the time limit."""
        evidence = self.evidence
        await self._newest_handshake()
        if evidence.sessions and evidence.sessions[0].answered:
            for revision in HANDSHAKES[:-1]:
                await self._older_handshake(revision)
        if any(one.answered or "could not be started" not in one.problem for one in evidence.sessions):
            await self._per_request()
        if "legacy" in evidence.lifecycles:
            await self._unknown_revision()
            await self._before_handshake()
        if evidence.lifecycles:
            await self._malformed_message()
            if self._sandbox is not None and self._process is not None:
                await call_in_sandbox(evidence, self._requests, self._sandbox, self._process, self._canaries)
            if self._target.url is not None:
                await self._probe_url()
        else:
            evidence.missing.setdefault("*", "the server did not answer")
        if (evidence.needs_credentials or self._target.headers) and self._requests.seconds_left() > 0:
            access = (self._target.headers, evidence.lifecycles, self._requests.modern, self._requests.seconds_left)
            evidence.authorization = await asyncio.to_thread(probe_authorization, self._url, *access)
        spoken = {str((one.result or {}).get("protocolVersion")) for one in evidence.handshakes.values()}
        per_request = [self._requests.modern] if "modern" in evidence.lifecycles else []
        evidence.revisions = (*(revision for revision in HANDSHAKES if revision in spoken), *per_request)

    async def _probe_url(self) -> None:
        evidence, credentials = self.evidence, self._target.headers
        modern, left = self._requests.modern, self._requests.seconds_left
        about = (evidence.lifecycles, modern, left, evidence.answered_reads)
        evidence.http = await asyncio.to_thread(probe_http, self._url, *about, credentials=credentials)
        if "modern" in evidence.lifecycles:
            begin = partial(HttpProbeSender, self._url, modern, left, credentials=credentials)
            evidence.header_arguments = await asyncio.to_thread(probe_arguments, evidence, begin)
        if left() > 0:
            await observe_clients_at(evidence, self._url, credentials, self._planned, self._requests)
        else:
            evidence.missing["http"] = TIME_LIMIT

    # --- the sessions ---

    async def _newest_handshake(self) -> None:
        """Run the first session; run it again if `initialize` got no answer, because the machine may be busy."""
        await self._first_session()
        hello = self.evidence.handshakes.get(LATEST_HANDSHAKE)
        if hello is None or not hello.problem.startswith("no answer"):
            return
        self._requests.restart(2 * self._start_patience)
        self.evidence.sessions.clear()
        await self._first_session(2 * self._start_patience)

    async def _first_session(self, patience: float = 0.0) -> None:
        async with self._session(f"session {LATEST_HANDSHAKE}") as conversation:
            features = self._requests.features if self._target.url is None else FEATURES_IN_CALLS
            if conversation is None or not await self._initialize(conversation, LATEST_HANDSHAKE, patience, features):
                return
            self.evidence.lifecycles.add("legacy")
            await self._probe_all(conversation, "handshake")
            await self._examine(conversation)
            if self._target.url is None and self._requests.seconds_left() > 0:
                async with self._session("second process", recorded=False) as other:
                    if other is not None:
                        hello = initialize_params(LATEST_HANDSHAKE)
                        second = await self._requests.request(other, "initialize", hello, self._start_patience)
                        self.evidence.second_process = second
            asked = [one.during for one in conversation.session.messages if needed_client_capability(one.message)]
            self._asking = first_requests_by_target(one for one in asked if one is not None and self._may_repeat(one))

    async def _older_handshake(self, revision: str) -> None:
        async with self._session(f"session {revision}") as conversation:
            if conversation is not None and await self._initialize(conversation, revision):
                agreed = (self.evidence.handshakes[revision].result or {}).get("protocolVersion")
                if agreed == revision:
                    await self._call_older(conversation, revision)
                if agreed == revision and revision in BATCHED:
                    await self._send_all(conversation, "batches")

    async def _unknown_revision(self) -> None:
        async with self._session("unknown revision") as conversation:
            if conversation is None:
                return
            await self._probe_all(conversation, "unknown revision")
            if self._requests.seconds_left() <= 0:
                return
            # The server may have refused the unknown revision.
            if self.evidence.probes["unknown-version"].result is None:
                hello = await self._requests.request(conversation, "initialize", initialize_params())
                if hello.result is None:
                    return
            await conversation.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
            await self._send_all(conversation, "strays")
            for method, params in self._asking:  # a client without features repeats these requests
                await self._requests.exchange(conversation, self._requests.message(method, params))

    async def _before_handshake(self) -> None:
        """Send a ping and two invalid `initialize` requests before the handshake.

        Over HTTP, only the last message is sent, because no session exists before the handshake.
        """
        batch = self.evidence.probes.get("batch")
        async with self._session("before the handshake") as conversation:
            if conversation is None:
                return
            await self._probe_all(conversation, "before the handshake")
            if batch is not None and batch.received is not None:
                await self._send_all(conversation, "batch initialize")

    async def _per_request(self) -> None:
        async with self._session(f"session {LATEST_MODERN}", "modern") as conversation:
            if conversation is None:
                return
            evidence = self.evidence
            discover = await self._requests.request(conversation, "server/discover", patience=self._start_patience)
            if (common := newest_common_revision(discover)) and common != self._requests.modern:
                self._requests.modern = common
                discover = await self._requests.request(conversation, "server/discover")
            evidence.discover, result = discover, discover.result
            if result is None or "supportedVersions" not in result:
                return
            evidence.lifecycles.add("modern")
            first = "legacy" not in evidence.lifecycles
            if first:
                self._read_introduction(result)
            await self._probe_all(conversation, "per-request")
            if first:
                await self._examine(conversation)
                if self._target.url is None:
                    await self._send_all(conversation, "per-request strays")
            else:
                await self._probe(conversation, "modern-list", self._requests.message("tools/list"))
                await self._probe_all(conversation, "first contact")
                await self._read_again(conversation)
            await repeat_input_requests(evidence, conversation, self._requests, self._may_repeat)
            about = (evidence, conversation, self._requests)
            await observe_streams(*about, result.get("capabilities"), self._may_repeat)
            if self._cases is None:
                await call_with_log_levels(evidence, conversation, self._requests)
                await cancel_slow_call(evidence, conversation, self._requests)

    async def _read_again(self, conversation: Conversation) -> None:
        evidence = self.evidence
        made = [call.exchange for call in evidence.calls if not call.failed] if self._stub is None else []
        reads = [evidence.probes.get(name) for name in ("read-resource", "get-prompt")] + evidence.later_reads[-1:]
        calls = [one for one in made if self._may_repeat(one.sent)][:_MOST_AGAIN]
        good = [one for one in [*reads, *calls] if one is not None and one.result is not None]
        for method, params in [*((one.method, params_without_meta(one.sent)) for one in good), *self._asking]:
            await self._requests.request(conversation, method, params)

    async def _malformed_message(self) -> None:
        lifecycle: Lifecycle = "legacy" if "legacy" in self.evidence.lifecycles else "modern"
        async with self._session("malformed message", lifecycle, terminate=True) as conversation:
            if conversation is None:
                return
            if lifecycle == "legacy":
                await self._initialize(conversation, LATEST_HANDSHAKE)
            else:
                await self._probe_all(conversation, "first contact")
            alive = await self._send(conversation, PROBES["malformed"])
            if alive and self._target.url is None:
                large = await self._requests.ask(conversation, self._requests.large_message())
                self.evidence.probes["large"], alive = large, large.received is not None
            if alive and self._cases is None and self._target.url is None:
                # Extreme arguments come last, because they may keep the server busy.
                plan = [planned for planned, _ in self._planned]
                extreme = plan_extra_valid_calls(self.evidence.read_only_tools, plan, extreme_arguments)
                await self._call_further(conversation, extreme, _EXTREME)

    async def _initialize(
        self,
        conversation: Conversation,
        revision: str,
        patience: float = 0.0,
        features: Mapping[str, Any] | None = None,
    ) -> bool:
        params = initialize_params(revision, features or {})
        hello = await self._requests.request(conversation, "initialize", params, patience or self._start_patience)
        self.evidence.handshakes[revision] = hello
        if hello.result is None:
            return False
        if not self.evidence.lifecycles:
            self._read_introduction(hello.result)
        await conversation.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return True

    def _read_introduction(self, result: Json) -> None:
        capabilities, info = result.get("capabilities"), result.get("serverInfo")
        meta = result.get("_meta")
        if info is None and isinstance(meta, dict):
            info = meta.get(META + "serverInfo")
        self.evidence.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.evidence.server = (
            {key: info[key] for key in ("name", "title", "version") if key in info} if isinstance(info, dict) else {}
        )

    # --- probes within a session ---

    async def _examine(self, conversation: Conversation) -> None:
        if isinstance(conversation, StdioConversation):
            self._process = conversation.serving_process()
        for method in LISTS:
            declared = method.split("/", maxsplit=1)[0] in self.evidence.capabilities
            if declared or method == "tools/list":
                listing = await read_all_pages(method, partial(self._requests.request, conversation))
                if declared or not listing.problem:
                    self.evidence.lists[method] = listing
        await self._probe_all(conversation, "lists")
        comparer = CallComparer(self.evidence, conversation, self._requests) if self._cases is None else None
        await self._call_tools(conversation, comparer)
        await self._read_on(conversation)
        if self._canaries is not None:
            named, allow_calls = self.evidence.named_tools, self._target.allow_calls
            permitted = {name: tool for name, tool in named if may_call_tool(name, named, allow_calls=allow_calls)}
            offered = self.evidence.lists.get("resources/templates/list")
            templates = offered.items if offered else ()
            about = (self.evidence, self._canaries, conversation, self._requests)
            await send_canaries(*about, permitted=permitted, queried=self.evidence.read_only_tools, templates=templates)
        if comparer is not None:
            await comparer.compare()
            called = {call.tool for call in self.evidence.calls if self._may_repeat(call.exchange.sent)}
            await observe_tasks(self.evidence, conversation, self._requests, called)
        ask = partial(self._requests.request, conversation)
        for method, before in self.evidence.lists.items() if self._requests.lifecycle == "modern" else ():
            if self._requests.seconds_left() > 0:
                self.evidence.lists_around_calls.append((before, await read_all_pages(method, ask)))

    async def _probe_all(self, conversation: Conversation, session: ProbeSession) -> None:
        evidence = self.evidence
        for probe in PROBES.values():
            if probe.session != session or probe.lifecycle not in ("", *evidence.lifecycles):
                continue
            if probe.transport not in ("", evidence.transport):
                evidence.missing[probe.name] = "there is no session before initialize"
            elif probe.suits(evidence.capabilities):
                params = probe.params(evidence) if callable(probe.params) else probe.params
                if params is None:
                    evidence.missing[probe.name] = NOTHING_TO_ASK
                else:
                    message = probe.raw or self._requests.message(probe.method, params, probe)
                    await self._probe(conversation, probe.name, message)

    async def _probe(self, conversation: Conversation, name: str, message: Json) -> None:
        if self._requests.seconds_left() <= 0:
            self.evidence.missing[name] = TIME_LIMIT
        else:
            self.evidence.probes[name] = await self._requests.ask(conversation, message)

    async def _send_all(self, conversation: Conversation, session: ProbeSession) -> None:
        for probe in PROBES.values():
            if probe.session != session:
                continue
            if self._requests.seconds_left() <= 0:
                self.evidence.missing[probe.name] = TIME_LIMIT
                return
            alive = await self._send(conversation, probe)
            if not alive or (session == "batches" and self.evidence.probes["batch"].received is None):
                return

    async def _send(self, conversation: Conversation, probe: Probe) -> bool:
        """Send a raw message, then a valid request; return True if the server answers the request."""
        after = self._requests.message("ping" if self._requests.lifecycle == "legacy" else "server/discover")
        patience = max(min(ANSWER, self._requests.seconds_left()), 0.5)
        text = probe.raw if isinstance(probe.raw, str) else json.dumps(probe.raw)
        answer, alive = await conversation.send_raw(text, after, patience, wait=probe.answered)
        # A finding about malformed messages already has an example.
        if alive.received is None and probe.session != "malformed":
            alive = replace(alive, problem=f"{alive.problem} (after {escape_surrogates(text)})")
        self.evidence.probes[probe.name] = answer
        if probe.after:
            self.evidence.probes[probe.after] = alive
        return alive.received is not None

    async def _read_on(self, conversation: Conversation) -> None:
        """In the first lifecycle only, read further prompts, resources and templates."""
        further = self.evidence.later_reads
        for method, params in [] if further else further_reads(self.evidence):
            if self._requests.seconds_left() <= 0:
                return
            further.append(await self._requests.request(conversation, method, params))
            if further[-1].server_ended:
                return
        for failed, params in prompts_with_optional_arguments(self.evidence):
            if self._requests.seconds_left() > 0:
                complete = await self._requests.request(conversation, "prompts/get", params)
                self.evidence.completed_prompts.append((failed, complete))
        await read_templated_resources(self.evidence, conversation, self._requests)

    # --- tool calls ---

    async def _call_tools(self, conversation: Conversation, comparer: CallComparer | None) -> None:
        evidence, tools = self.evidence, self.evidence.named_tools
        allow_calls = self._target.allow_calls
        plan, evidence.uncalled = plan_calls(tools, self._cases, examples=self._examples, allow_calls=allow_calls)
        # Repeat calls whose results contained nothing from the API's response.
        unshown: list[PlannedCall] = []
        for planned in plan:
            if (problem := conversation.session.last_call_problem).startswith("the server"):
                evidence.uncalled[planned.tool] = f"before its turn, {problem}"
                continue
            if self._requests.seconds_left() <= 0:
                evidence.uncalled[planned.tool] = evidence.missing["tools/call"] = TIME_LIMIT
                continue
            token = next(self._requests.numbers)  # servers send progress only to requests with a token
            call = await self._call(conversation, planned, {"_meta": {"progressToken": token}})
            evidence.calls.append(call)
            if comparer is not None:
                await comparer.repeat(call)
            self._planned.append((planned, call))
            if planned.origin != "case" and call.exchange.problem.startswith("no answer"):
                evidence.uncalled[planned.tool] = f"given up: {call.exchange.problem}; the tool may be slow by design"
            if not call.failed and not call.mismatches and has_answer_value(call) and compare_with_answer(call).nothing:
                unshown += plan_changed_responses(planned)
        reading = evidence.read_only_tools
        failed = [planned for planned, call in self._planned if call.failed]
        plan = [*await self._guess_again(conversation, failed, comparer), *plan]
        more = ((unshown, evidence.changed), (plan_varied_calls(reading, plan), evidence.others))
        for planned_calls, calls in (*more, (plan_invalid_calls(reading, plan), evidence.wrong)):
            until = time.monotonic() + _FURTHER
            for planned in planned_calls:
                late = bool(planned.violates) and time.monotonic() > until
                if not late and self._may_call_again(conversation, planned.tool):
                    named = {"progressToken": f"mcpfactory-{next(self._requests.numbers)}"}
                    calls.append(await self._call(conversation, planned, {"_meta": named}))
        if self._cases is None:
            texts = seen_texts(call.exchange for call in evidence.calls if not call.failed)
            arguments = partial(extra_valid_arguments, texts=texts)
            await self._call_further(conversation, plan_extra_valid_calls(reading, plan, arguments))

    async def _guess_again(
        self, conversation: Conversation, failed: Sequence[PlannedCall], comparer: CallComparer | None
    ) -> list[PlannedCall]:
        """Make other guesses, then correct those of read-only tools, until one succeeds. Return the successful calls."""
        calls, found = self.evidence.calls, dict[str, PlannedCall]()

        async def send(planned: PlannedCall) -> RecordedCall | None:
            if conversation.session.last_call_problem or self._requests.seconds_left() <= 0:
                return None
            calls.append(call := await self._call(conversation, planned))
            if comparer is not None:
                await comparer.repeat(call)
            return call

        for planned in plan_second_guesses(failed, dict(self.evidence.named_tools), calls):
            call = None if planned.tool in found else await send(planned)
            if call is not None and not call.failed:
                found[planned.tool] = planned
        samples, page = (self._canaries.samples, self._canaries.page) if self._canaries is not None else (None, "")
        tools = self.evidence.read_only_tools if self._cases is None else {}
        return [*found.values(), *await correct_failed_calls(tools, calls, send, samples, page)]

    async def _call_further(
        self, conversation: Conversation, plan: Sequence[PlannedCall], patience: float = ANSWER
    ) -> None:
        """Make further calls of tools that answered quickly, within a separate time limit."""
        further = self.evidence.further
        quick = {call.tool for call in self.evidence.calls if call.exchange.milliseconds < QUICK}
        until = time.monotonic() + _FURTHER
        for planned in plan:
            may = planned.tool in quick and self._may_call_again(conversation, planned.tool)
            if may and time.monotonic() < until:
                call = await self._call(conversation, planned, patience=patience)
                if patience < ANSWER and call.exchange.problem.startswith("no answer"):
                    continue  # a correct tool may stay busy with extreme arguments
                further.append(call)

    def _may_call_again(self, conversation: Conversation, tool: str) -> bool:
        made = (*self.evidence.tool_calls, *self.evidence.changed)
        answered = any(call.tool == tool and not call.failed for call in made)
        return answered and not conversation.session.last_call_problem and self._requests.seconds_left() > 0

    def _may_repeat(self, request: Json | str) -> bool:
        if not isinstance(request, dict) or request.get("method") != "tools/call":
            return True
        name = str(params_without_meta(request).get("name"))
        return may_call_tool(name, self.evidence.named_tools, allow_calls=self._target.allow_calls)

    async def _call_older(self, conversation: Conversation, revision: str) -> None:
        for planned, call in self._planned:
            permitted = self._stub is not None or self._may_repeat(call.exchange.sent)
            if permitted and foreign_content_kinds(call.exchange, revision) and self._requests.seconds_left() > 0:
                made = await self._call(conversation, planned)
                self.evidence.older.append(replace(made, title=revision))

    async def _call(
        self, conversation: Conversation, planned: PlannedCall, more: Json | None = None, *, patience: float = ANSWER
    ) -> RecordedCall:
        params = {"name": planned.tool, "arguments": dict(planned.arguments), **(more or {})}
        exchange = self._requests.request(conversation, "tools/call", params, patience)
        return await record_call(planned, self._stub, exchange)

    # --- messages and sessions ---

    @asynccontextmanager
    async def _session(
        self, purpose: str, lifecycle: Lifecycle = "legacy", *, terminate: bool = False, recorded: bool = True
    ) -> AsyncIterator[Conversation | None]:
        """Open and yield a conversation in the given lifecycle; yield None if no conversation is possible.

        `terminate`: a signal ends the session. `recorded`: the session is stored as evidence at its end.
        """
        self._requests.lifecycle = lifecycle
        if self._requests.seconds_left() <= 0:
            self.evidence.missing.setdefault("*", TIME_LIMIT)
            yield None
            return
        conversation = await self._connect(self._target, self._environ, purpose)
        if isinstance(conversation, Session):
            self.evidence.sessions += [conversation] if recorded else []
            self.evidence.missing.setdefault("*", conversation.problem)
            yield None
            return
        if isinstance(conversation, HttpConversation):
            conversation.schemas = self.evidence.input_schemas
        try:
            yield conversation
        finally:
            await conversation.close(terminate=terminate)
            self.evidence.sessions += [conversation.session] if recorded else []
            if isinstance(conversation, HttpConversation):
                self._url = conversation.url
