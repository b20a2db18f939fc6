"""Call tools without `readOnlyHint` in a process that cannot change anything outside its temporary folder.

The process has no network, and the kernel refuses writes to other folders. Therefore these calls need no consent, even
for tools with `destructiveHint`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from mcpfactory_pipeline.checks.call_plan import (
    MAX_CALLS,
    PlannedCall,
    plan_invalid_calls,
    plan_second_guesses,
    record_call,
)
from mcpfactory_pipeline.checks.canaries import Canaries
from mcpfactory_pipeline.checks.canary_calls import send_canaries
from mcpfactory_pipeline.checks.client_capabilities import params_without_meta
from mcpfactory_pipeline.checks.evidence import AnswerDuringSlowCall, Evidence, Session, sent_arguments
from mcpfactory_pipeline.checks.exchange import LATEST_HANDSHAKE, QUICK, initialize_params
from mcpfactory_pipeline.checks.probes import read_all_pages
from mcpfactory_pipeline.checks.requester import Requester
from mcpfactory_pipeline.checks.samples import sample_arguments
from mcpfactory_pipeline.checks.transport.stdio import StdioConversation
from mcpfactory_pipeline.isolation.levels import Sandbox, make_sandbox, side_effect_free_level
from mcpfactory_runtime.types import Json

_ANSWER: Final = 5.0  # seconds; timeout of a call, because a tool may wait for the network
_START: Final = 15.0  # seconds; timeout of the first answer


class ServerProcess(NamedTuple):
    """Command and folder that start the server's own process, without launchers such as `npx`."""

    command: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path | None


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
    """Call the tools that were not called before, and add the answered calls to `evidence.calls`.

    Unanswered calls are not recorded, because the sandbox may be the cause.
    """
    tools = {name: tool for name, tool in evidence.named_tools if name in evidence.uncalled}
    plan = [PlannedCall(name, *sample_arguments(tool.get("inputSchema"))) for name, tool in tools.items()][:MAX_CALLS]
    if not plan or requests.seconds_left() <= 0:
        return
    command, environ = sandbox.command(server.command), {**server.environ, **sandbox.environ}
    conversation = await StdioConversation.start(tuple(command), server.cwd, environ, "sandbox")
    if isinstance(conversation, Session):
        return
    try:
        if await _is_ready(conversation, evidence, requests):
            failed = [one for one in plan if await _call(conversation, evidence, requests, one)]
            for planned in plan_second_guesses(failed, tools, evidence.calls):
                await _call(conversation, evidence, requests, planned)
            await _examine(conversation, evidence, requests, {one.tool: tools[one.tool] for one in plan}, canaries)
    finally:
        evidence.in_sandbox += conversation.session.exchanges
        await conversation.close(terminate=True)


async def _examine(
    server: StdioConversation,
    evidence: Evidence,
    requests: Requester,
    tools: Mapping[str, Json],
    canaries: Canaries | None,
) -> None:
    """Call the tools that answer, with pings, invalid arguments and canaries; then list the tools again."""
    called = [call for call in evidence.calls if call.tool in tools and call.exchange.milliseconds < QUICK]
    for call in called if requests.lifecycle == "legacy" else ():
        if requests.seconds_left() > 0:
            params = params_without_meta(call.exchange.sent)
            messages = [requests.message("tools/call", params), requests.message("ping")]
            both = await server.overlap(messages, _ANSWER, call.exchange.milliseconds / 2_000)
            if len(both) == 2 and both[0].received is not None:
                evidence.busy.append(AnswerDuringSlowCall("ping", call.tool, both[1], both[0]))
    plan = [PlannedCall(call.tool, sent_arguments(call), "guess") for call in called if not call.failed]
    for planned in plan_invalid_calls(tools, plan):
        if requests.seconds_left() > 0:
            params = {"name": planned.tool, "arguments": dict(planned.arguments)}
            call = await record_call(planned, None, requests.request(server, "tools/call", params, _ANSWER))
            evidence.wrong += [call] if call.exchange.received is not None else []
    if canaries is not None:
        await send_canaries(evidence, canaries, server, requests, permitted=tools)
    if requests.seconds_left() > 0:
        evidence.tools_after_calls = await read_all_pages("tools/list", partial(requests.request, server))


async def _is_ready(server: StdioConversation, evidence: Evidence, requests: Requester) -> bool:
    requests.lifecycle = "legacy" if "legacy" in evidence.lifecycles else "modern"
    if requests.lifecycle == "modern":
        return (await requests.request(server, "server/discover", patience=_START)).result is not None
    hello = await requests.request(server, "initialize", initialize_params(LATEST_HANDSHAKE), _START)
    await server.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return hello.result is not None


async def _call(server: StdioConversation, evidence: Evidence, requests: Requester, planned: PlannedCall) -> bool:
    """Make a call, record it if it was answered, and return True if it failed.

    A tool that only failed counts as not called, because the sandbox may be the cause.
    """
    if requests.seconds_left() <= 0:
        return False
    params = {"name": planned.tool, "arguments": dict(planned.arguments)}
    call = await record_call(planned, None, requests.request(server, "tools/call", params, _ANSWER))
    if call.exchange.received is not None:
        evidence.calls.append(call)
    if call.failed:
        problem = call.exchange.problem or "the call returned an error"
        evidence.uncalled[planned.tool] = f"{evidence.uncalled[planned.tool]}; in a sandbox, {problem}"
    else:
        del evidence.uncalled[planned.tool]
    return call.failed
