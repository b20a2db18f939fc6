"""Calls of tools without `readOnlyHint`, in a process that can change nothing outside its own temporary folder.

The process cannot use the network, and the kernel refuses writes elsewhere. Therefore these calls need no consent, not
even calls of tools with `destructiveHint`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.checks.call_plan import MAX_CALLS, PlannedCall, plan_second_guesses, record_call
from mcpfactory_pipeline.checks.evidence import Evidence, Session
from mcpfactory_pipeline.checks.exchange import LATEST_HANDSHAKE, initialize_params
from mcpfactory_pipeline.checks.requester import Requester
from mcpfactory_pipeline.checks.samples import sample_arguments
from mcpfactory_pipeline.checks.transport.stdio import StdioConversation
from mcpfactory_pipeline.isolation.levels import Sandbox, make_sandbox, side_effect_free_level

_ANSWER: Final = 5.0  # seconds; timeout of a call, because a tool may wait for the network
_START: Final = 15.0  # seconds; timeout of the first answer


@contextmanager
def side_effect_free_sandbox() -> Iterator[Sandbox | None]:
    """Yield a sandbox that reads all files, writes only below a temporary folder, and has no network.

    Yield None if this machine has no isolation level that prevents side effects.
    """
    level = side_effect_free_level()
    if level is None:
        yield None
        return
    # Devices are left out, because reading from some devices has effects.
    readable = [path for path in Path("/").iterdir() if path.name != "dev"]
    with tempfile.TemporaryDirectory(prefix="mcpfactory-calls-", ignore_cleanup_errors=True) as work:
        yield make_sandbox({"isolation": level.name}, Path(work), readable=readable, network=False)


async def call_in_sandbox(
    evidence: Evidence,
    requests: Requester,
    sandbox: Sandbox,
    *,
    command: Sequence[str],
    environ: Mapping[str, str],
    cwd: Path | None,
) -> None:
    """Call the tools that were not called before, and add the answered calls to `evidence.calls`.

    A call without an answer is not recorded, because the sandbox may be the cause.

    Args:
        evidence: the record to extend.
        requests: builds and sends the requests until the time limit.
        sandbox: a sandbox without side effects.
        command: the command of the server's own process, without launchers such as `npx`.
        environ: the server's environment.
        cwd: the server's working directory.
    """
    tools = {name: tool for name, tool in evidence.named_tools if name in evidence.uncalled}
    plan = [PlannedCall(name, *sample_arguments(tool.get("inputSchema"))) for name, tool in tools.items()][:MAX_CALLS]
    if not plan or requests.seconds_left() <= 0:
        return
    inside = {**environ, **sandbox.environ}
    server = await StdioConversation.start(tuple(sandbox.command(command)), cwd, inside, "sandbox")
    if isinstance(server, Session):
        return
    try:
        if await _is_ready(server, evidence, requests):
            failed = [one for one in plan if await _call(server, evidence, requests, one)]
            for planned in plan_second_guesses(failed, tools, evidence.calls):
                await _call(server, evidence, requests, planned)
    finally:
        evidence.in_sandbox += server.session.exchanges
        await server.close(terminate=True)


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
