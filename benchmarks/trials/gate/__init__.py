"""The gate under attack: attempts to bring something bad into a channel, or to have something forged believed.

Each attempt is a row: what it does by real commands on a copy of a workspace with two real servers, what must happen, and what
happened. `ATTEMPTS` is the table; rows that are honest stand between them, for a gate that refuses everything proves nothing.
"""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.exam.results import Outcome, judged
from benchmarks.trials.gate import channels, code, evals, fake_evidence, shard_results, tampering
from benchmarks.trials.gate.attempt import AttackResult, Attempt
from benchmarks.trials.gate.workspace import AttackedWorkspace, make_origin

__all__ = ["ATTEMPTS", "attack", "attack_all", "run"]

ATTEMPTS: Final = (
    *tampering.ATTEMPTS,
    *channels.ATTEMPTS,
    *shard_results.ATTEMPTS,
    *code.ATTEMPTS,
    *evals.ATTEMPTS,
    *fake_evidence.ATTEMPTS,
)


def attack(
    attempt: Attempt, origin: Path, folder: Path, make: Callable[[Path], AttackedWorkspace] = AttackedWorkspace
) -> AttackResult:
    """Does one attempt on a copy of the origin, which is taken away afterwards; `make` is how its commands are typed."""
    shutil.copytree(origin, folder, symlinks=True)
    space = make(folder)
    try:
        harm = tuple(attempt.act(space))
    except Exception as error:  # noqa: BLE001 - an attempt that breaks shows nothing, and must not look as if it were refused
        harm = (f"the attempt broke: {error!r} {traceback.format_exc(limit=-3)}",)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return AttackResult(attempt, harm, tuple(space.typed))


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Every attempt once, two at a time; `times` and the seed change nothing. Prints the table."""
    del times, seed
    return attack_all(ATTEMPTS, make_origin(folder / "origin"), folder)


def attack_all(attempts: Sequence[Attempt], origin: Path, folder: Path) -> Outcome:
    """These attempts, in their order; a row is printed when it is known."""
    wrong = 0
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(attack, one, origin, folder / f"workspace-{at}") for at, one in enumerate(attempts)]
        for task in tasks:
            met = task.result()
            wrong += bool(met.harm)
            lines = (f"does: {met.attempt.does}", f"must: {met.attempt.must}", *met.commands)
            harm = (f"HARM: {one.strip()}" for one in met.harm)
            print("\n          ".join((f"{met.verdict:8}  {met.attempt.name}", *lines, *harm)), flush=True)
    bad = sum(not one.honest for one in attempts)
    figure = f"{bad} attempts and {len(attempts) - bad} honest rows; {wrong} not as they must be"
    return judged(figure, good=not wrong)
