"""Two processes that share Redis behind a proxy without stickiness, one of them killed (-9) every five seconds, under load.

Old clients call in sessions and resume their streams, new ones call without, others begin tasks or cancel. Each call ends with its answer or
with a report; no session, stream, task or cancellation is lost, no event comes twice, and no call is carried out twice.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Final

import httpx

from benchmarks.exam.results import Outcome, judged, unavailable
from benchmarks.trials.redis_server import HINT, install_redis, redis_server
from benchmarks.trials.two_processes.clients import Tally, call_anew, call_in_a_session, cancel, run_tasks
from benchmarks.trials.two_processes.fleet import Fleet

__all__ = ["run"]

_EVERY: Final = 5.0  # seconds
_SHOWN: Final = 20  # faults
_CLIENTS: Final = (*[call_in_a_session] * 6, *[call_anew] * 4, *[run_tasks] * 3, cancel)


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Load for `times` seconds; the figure says how the calls ended."""
    if not install_redis():
        return unavailable(HINT)
    with redis_server() as address:
        tally = asyncio.run(_load(folder, address, times, random.Random(seed)))
    runs = Counter(key for word, key, _ in tally.ledger() if word == "ran")
    tally.faults += [f"{key} was carried out {count} times" for key, count in runs.items() if count > 1]
    # A kill costs what is under way at that moment, at most one call of each client; whatever else is reported was lost for nothing.
    for client, kind in ((call_in_a_session, "old calls"), (call_anew, "new calls"), (run_tasks, "tasks")):
        count, most = tally.counts[f"{kind} reported"], tally.fleet.kills * _CLIENTS.count(client)
        if count > most:
            tally.faults.append(f"{count} {kind} were reported as lost, and {most} were under way")
    for fault in tally.faults[:_SHOWN]:
        print(fault)
    told = ", ".join(f"{count} {what}" for what, count in sorted(tally.counts.items()))
    figure = f"{times} s, {tally.fleet.kills} kills of 2 processes: {told}; {len(tally.faults)} lost or doubled"
    some = all(
        tally.counts[what] for what in ("old calls answered", "new calls answered", "tasks answered", "cancelled")
    )
    return judged(figure, good=not tally.faults and some)


async def _load(folder: Path, address: str, seconds: int, choose: random.Random) -> Tally:
    limits = httpx.Limits(max_keepalive_connections=0)
    async with Fleet(folder, address) as fleet, httpx.AsyncClient(timeout=60, trust_env=False, limits=limits) as http:
        tally = Tally(fleet, http)
        clients = [asyncio.ensure_future(client(tally, str(name))) for name, client in enumerate(_CLIENTS)]
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() + _EVERY < deadline:
            await asyncio.sleep(_EVERY)
            await fleet.kill(choose.randrange(2))
            print(f"kill {fleet.kills}: {sum(tally.counts.values())} events, {len(tally.faults)} faults", flush=True)
        await asyncio.sleep(max(deadline - asyncio.get_running_loop().time(), 0))
        tally.running = False
        for client, done in zip(_CLIENTS, await asyncio.gather(*clients, return_exceptions=True), strict=True):
            if isinstance(done, BaseException):
                tally.faults.append(f"{client.__name__} broke off: {type(done).__name__} {done}")
        return tally
