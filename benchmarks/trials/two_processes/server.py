"""The server of the trial: what its handlers do is written into a ledger, a line each, which outlives the process."""

from __future__ import annotations

import asyncio
import os

from benchmarks.trials.mutants import apply_mutant
from mcpfactory_runtime import Context, Server, Text

server = Server("two-processes", version="1")


def note(word: str, key: str) -> None:
    """Write a line into the ledger: what happened, to which call, in which process."""
    ledger = os.open(os.environ["TRIAL_LEDGER"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(ledger, f"{word} {key} {os.getpid()}\n".encode())
    os.close(ledger)


@server.tool
async def work(key: str, steps: int, ctx: Context) -> Text:
    """Tell of each step, and answer with the key."""
    note("ran", key)
    for number in range(steps):
        ctx.info(f"{key} {number}")
        await asyncio.sleep(0.1)
    return Text(key)


@server.tool
async def nothing() -> Text:
    """Do nothing."""
    return Text("")


@server.tool(task="optional")
async def job(key: str) -> Text:
    """Work in the background."""
    note("ran", key)
    await asyncio.sleep(0.5)
    return Text(key)


@server.tool
async def hold(key: str) -> Text:
    """Wait to be cancelled."""
    note("ran", key)
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        note("cancelled", key)
        raise
    return Text(key)


if __name__ == "__main__":
    apply_mutant()
    server.run()
