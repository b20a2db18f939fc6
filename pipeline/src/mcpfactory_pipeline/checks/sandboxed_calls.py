"""Call tools without `readOnlyHint` in a process that cannot change anything outside its temporary folder.

The process has no network, and the kernel refuses writes to other folders. Therefore these calls need no consent, even
for tools with `destructiveHint`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.checks.call_plan import (
    MAX_CALLS,
    PlannedCall,
    plan_extra_valid_calls,
    plan_invalid_calls,
    plan_second_guesses,
    record_call,
)
from mcpfactory_pipeline.checks.canaries import Canaries
from mcpfactory_pipeline.checks.canary_calls import send_canaries
from mcpfactory_pipeline.checks.client_capabilities import needed_client_capability, params_without_meta
from mcpfactory_pipeline.checks.corrected_arguments import correct_failed_calls
from mcpfactory_pipeline.checks.evidence import (
    AnswerDuringSlowCall,
    CallComparison,
    Evidence,
    RecordedCall,
    Session,
    hint,
    sent_arguments,
)
from mcpfactory_pipeline.checks.exchange import LATEST_HANDSHAKE, QUICK, WireExchange, initialize_params
from mcpfactory_pipeline.checks.modified_states import repeat_input_requests
from mcpfactory_pipeline.checks.probes import read_all_pages
from mcpfactory_pipeline.checks.requester import Requester
from mcpfactory_pipeline.checks.samples import extra_valid_arguments, sample_arguments
from mcpfactory_pipeline.checks.stream_probes import observe_streams
from mcpfactory_pipeline.checks.task_calls import observe_tasks
from mcpfactory_pipeline.checks.transport.stdio import ServerProcess, StdioConversation
from mcpfactory_pipeline.isolation.levels import Sandbox, make_sandbox, side_effect_free_level
from mcpfactory_runtime.schemas.walk import required_of
from mcpfactory_runtime.types import Json

_ANSWER: Final = 5.0  # seconds; timeout of a call, because a tool may wait for the network
_FURTHER: Final = 2.0  # seconds for all further valid calls, and for all calls with invalid arguments
_MAX_REPEATED: Final = 4  # maximum number of idempotent tools to call again
_MOST_READERS: Final = 2  # maximum number of tools that read after each call of an idempotent tool
_START: Final = 15.0  # seconds; timeout of the first answer


@contextmanager
def side_effect_free_sandbox() -> Iterator[Sandbox | None]:
    """Yield a sandbox that reads all files, writes only below a temporary folder, and has no network.

    Yield None if no isolation level of this machine prevents side effects.
    """
    level = side_effect_free_level()
    if level is None:
        yield None
        return
    # Leave out devices, because reading from some devices has effects.
    readable = [path for path in Path("/").iterdir() if path.name != "dev"]
    with tempfile.TemporaryDirectory(prefix="mcpfactory-calls-", ignore_cleanup_errors=True) as work:
        yield make_sandbox({"isolation": level.name}, Path(work), readable=readable, network=False)


async def call_in_sandbox(
    evidence: Evidence,
    requests: Requester,
    sandbox: Sandbox,
    server: ServerProcess,
    canaries: Canaries | None,
) -> None:
    """Call the tools that were not called before, and add the answered calls to `evidence.calls`."""
    tools = {name: tool for name, tool in evidence.named_tools if name in evidence.uncalled}
    tools = dict(islice(tools.items(), MAX_CALLS))
    if not tools or requests.seconds_left() <= 0:
        return
    command, environ = sandbox.command(server.command), {**server.environ, **sandbox.environ}
    conversation = await StdioConversation.start(tuple(command), server.cwd, environ, "sandbox")
    if isinstance(conversation, Session):
        return
    try:
        await _Caller(evidence, requests, conversation, tools).run(canaries)
    finally:
        evidence.sandboxed = conversation.session
        await conversation.close(terminate=True)


class _Caller:
    """Calls of tools in one process. Unanswered calls are not recorded, because the sandbox may be the cause."""

    def __init__(
        self, evidence: Evidence, requests: Requester, conversation: StdioConversation, tools: Mapping[str, Json]
    ) -> None:
        self._evidence = evidence
        self._requests = requests
        self._conversation = conversation
        self._tools = tools

    async def run(self, canaries: Canaries | None) -> None:
        evidence, requests = self._evidence, self._requests
        ask = partial(requests.request, self._conversation)
        if not await self._is_ready():
            return
        before = await read_all_pages("tools/list", ask)
        guesses = [
            PlannedCall(name, *sample_arguments(tool.get("inputSchema"), tool.get("description")))
            for name, tool in self._tools.items()
        ]
        calls = [(planned, await self._guess(planned)) for planned in guesses]
        failed = [planned for planned, call in calls if call is not None and call.failed]
        for planned in plan_second_guesses(failed, self._tools, evidence.calls):
            if planned.tool in evidence.uncalled:
                await self._guess(planned)
        tools = {name: tool for name, tool in self._tools.items() if name in evidence.uncalled}
        samples = canaries.samples if canaries is not None else None
        await correct_failed_calls(tools, evidence.calls, self._guess, samples)
        await self._examine(canaries)
        await self._repeat_idempotent_calls()
        if requests.lifecycle == "modern":
            await repeat_input_requests(evidence, self._conversation, requests, self._is_called_here)
            about = (evidence, self._conversation, requests)
            await observe_streams(*about, evidence.capabilities, self._is_called_here)
        await observe_tasks(evidence, self._conversation, self._requests, self._tools, record_unanswered=False)
        evidence.lists_around_calls.append((before, await read_all_pages("tools/list", ask)))

    async def _is_ready(self) -> bool:
        requests, server = self._requests, self._conversation
        requests.lifecycle = "legacy" if "legacy" in self._evidence.lifecycles else "modern"
        if requests.lifecycle == "modern":
            # Declare all capabilities, because a faulty server keeps them for later requests that declare none.
            first = requests.message("server/discover", features=requests.features)
            return (await requests.exchange(server, first, _START)).result is not None
        params = initialize_params(LATEST_HANDSHAKE, requests.features)
        hello = await requests.request(server, "initialize", params, _START)
        await server.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return hello.result is not None

    async def _guess(self, planned: PlannedCall) -> RecordedCall | None:
        """Call a tool with guessed arguments. A tool that only failed counts as not called."""
        call = await self._call(planned)
        if call is None:
            return None
        reasons = self._evidence.uncalled
        if call.failed:
            problem = call.exchange.problem or "the call returned an error"
            reasons[call.tool] = f"{reasons[call.tool].partition(';')[0]}; in a sandbox, {problem}"
        else:
            del reasons[call.tool]
        self._evidence.calls += [call] if call.exchange.received is not None else []
        return call

    async def _examine(self, canaries: Canaries | None) -> None:
        """Call the tools that answered quickly again: during a ping, with invalid arguments, and with canaries."""
        evidence, requests = self._evidence, self._requests
        quick = [one for one in evidence.calls if one.tool in self._tools and one.exchange.milliseconds < QUICK]
        # A simple server may read the next message as the answer to its question.
        asked = [one.during for one in self._conversation.session.messages if needed_client_capability(one.message)]
        alone = [call for call in quick if call.exchange.sent not in asked]
        for call in alone if requests.lifecycle == "legacy" else ():
            await self._ping_during(call)
        plan = [PlannedCall(call.tool, sent_arguments(call), "guess") for call in quick if not call.failed]
        odd = plan_extra_valid_calls(self._tools, plan, extra_valid_arguments)
        evidence.further += await self._answered(odd)
        evidence.wrong += await self._answered(plan_invalid_calls(self._tools, plan))
        if canaries is not None:
            about = (evidence, canaries, self._conversation, requests)
            await send_canaries(*about, permitted=self._tools, queried=self._tools)

    async def _answered(self, plan: Sequence[PlannedCall]) -> list[RecordedCall]:
        """Make calls within a time limit, and return the answered ones."""
        until = time.monotonic() + _FURTHER
        made = [await self._call(planned) for planned in plan if time.monotonic() < until]
        return [call for call in made if call is not None and call.exchange.received is not None]

    def _is_called_here(self, request: Json | str) -> bool:
        return params_without_meta(request).get("name") in self._tools

    async def _repeat_idempotent_calls(self) -> None:
        """Call tools with `idempotentHint` twice, and read with other tools after each call."""
        reading = self._evidence.read_only_tools
        readers = [name for name, tool in reading.items() if not required_of(tool.get("inputSchema"))][:_MOST_READERS]
        marked = {name for name, tool in self._tools.items() if hint(tool, "idempotentHint") is True}
        made = [one for one in self._evidence.calls if one.tool in marked and not one.failed]
        for call in [one for one in made if one.exchange.milliseconds < QUICK][:_MAX_REPEATED] if readers else ():
            seen: dict[str, list[WireExchange]] = {name: [] for name in readers}
            for reads in (2, 1):
                await self._call(PlannedCall(call.tool, sent_arguments(call), "guess"))
                for name in readers * reads:
                    read = await self._call(PlannedCall(name, {}, "no arguments"))
                    if read is None or read.exchange.received is None:
                        return
                    seen[name].append(read.exchange)
            self._evidence.comparisons += [
                CallComparison("repeated", call.tool, tuple(found[:2]), tuple(found[2:]), name)
                for name, found in seen.items()
            ]

    async def _ping_during(self, call: RecordedCall) -> None:
        if self._requests.seconds_left() <= 0:
            return
        again = self._requests.message("tools/call", params_without_meta(call.exchange.sent))
        messages = [again, self._requests.message("ping")]
        both = await self._conversation.overlap(messages, _ANSWER, call.exchange.milliseconds / 2_000)
        if len(both) == len(messages) and both[0].received is not None:
            self._evidence.busy.append(AnswerDuringSlowCall("ping", call.tool, both[1], both[0]))

    async def _call(self, planned: PlannedCall) -> RecordedCall | None:
        """Make a call; return None if no time is left."""
        if self._requests.seconds_left() <= 0:
            return None
        params = {"name": planned.tool, "arguments": dict(planned.arguments)}
        exchange = self._requests.request(self._conversation, "tools/call", params, _ANSWER)
        return await record_call(planned, None, exchange)
