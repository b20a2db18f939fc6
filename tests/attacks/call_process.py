"""`python -m tests.attacks.call_process`: calls each API whose URL comes on a line of stdin, and prints as JSON what its answer cost.

Each call is in a process of its own, a copy of this one that has loaded all that an answer needs, so that its memory can be told.

`held`: the longest that the event loop was kept from going on, by its own thread or by another that let it not, in seconds of the processor, which a
busy machine does not change; `grown`: by how many MiB
the process was larger at its largest than before; `said`: what a model would have read.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import Operation, Upstream

_GET = Operation("GET", "/x")


async def _ask(url: str) -> tuple[float, str]:
    longest, last = 0.0, time.process_time()

    async def tick() -> None:
        nonlocal longest, last
        while True:
            await asyncio.sleep(0)
            now = time.process_time()
            longest, last = max(longest, now - last), now

    ticking = asyncio.create_task(tick())
    async with Upstream("", environ={"MCPFACTORY_BASE_URL": url, "MCPFACTORY_TIMEOUT": "10"}, retry_wait=0) as upstream:
        try:
            said = json.dumps((await upstream.send(_GET, {})).content)
        except ToolError as error:
            said = str(error)
    await asyncio.sleep(0)  # what held the loop last is seen, too
    await asyncio.sleep(0)
    ticking.cancel()
    return longest, said


def _largest() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


def _tell(url: str) -> None:
    before = _largest()
    held, said = asyncio.run(_ask(url))
    print(json.dumps({"held": held, "grown": _largest() - before, "said": said[:200]}), flush=True)


def main() -> None:
    """Call what is named until there is no more."""
    for number, line in enumerate(sys.stdin):
        url = line.strip()
        if not number:
            asyncio.run(_ask(f"{url}/honest"))  # loads what any answer loads
        child = os.fork()
        if not child:
            try:
                _tell(url)
                os._exit(0)
            except BaseException as error:  # noqa: BLE001 - whatever it is: the copy must not go on as its parent
                print(json.dumps({"ended": repr(error)[:200]}), flush=True)
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"ended": status}), flush=True)


if __name__ == "__main__":
    main()
