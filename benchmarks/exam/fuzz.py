"""A search guided by coverage: each target of benchmarks/fuzz is run with inputs that atheris makes up.

What it began with and what it found grows in the folder of the peers, so that the next search goes on from there. An input that
breaks a promise is printed with its traceback, and kept; a test of the suite should hold it from then on.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterable

from benchmarks.bench.peers import home
from benchmarks.bench.peers.outsiders import environment
from benchmarks.exam.outcome import Outcome, judged, unavailable
from benchmarks.exam.places import ROOT
from benchmarks.fuzz import TARGETS

__all__ = ["RUNS", "fuzz"]

RUNS = 100_000
SIZE = 2048  # bytes of one input
PATIENCE = 10  # seconds for one input; what takes longer hangs
_DONE = re.compile(r"^#(\d+)\s+DONE\s+cov: (\d+) ft: \d+ corp: (\d+)/", re.M)


def fuzz(runs: int, only: str) -> Outcome:
    """Search every target.

    Args:
        runs: inputs for each target.
        only: targets separated by commas; all when empty.
    """
    wanted = only.split(",") if only else TARGETS
    if unknown := set(wanted) - set(TARGETS):
        return unavailable(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    try:
        python = environment("fuzzer", ("atheris==3.0.0",), binary="atheris")
    except subprocess.CalledProcessError:
        return unavailable(
            "atheris cannot be installed here. hint: it has wheels for Linux and some versions of Python only"
        )
    broken, executions = [], 0
    for target in wanted:
        found = _search(python, target, runs)
        broken += [target] * (found < runs)
        executions += found
    figure = f"{executions} executions over {len(list(wanted))} targets, {len(broken)} broken"
    return judged(figure + (f": {', '.join(broken)}" if broken else ""), good=not broken)


def _search(python: str, target: str, runs: int) -> int:
    """Search one target and print how far; the executions that it came through, less than `runs` when it broke."""
    module = importlib.import_module(f"benchmarks.fuzz.{target}")
    folder = home() / "fuzz" / target
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in module.SEEDS:
        (corpus / hashlib.sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)
    (folder / "words").write_text(_dictionary(module.WORDS))
    options = [f"-runs={runs}", f"-max_len={SIZE}", f"-timeout={PATIENCE}", f"-artifact_prefix={folder}/"]
    command = [python, "-m", "benchmarks.fuzz", target, *options, f"-dict={folder}/words", str(corpus)]
    sources = ("", "factory/runtime/src", "factory/codegen/src", "pipeline/src")
    path = [*(str(ROOT / one) for one in sources), sysconfig.get_path("purelib")]  # what the targets import is there
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", check=False
    )
    reached = _DONE.search(done.stdout)
    if done.returncode or reached is None:
        print(f"fuzz {target}: broken, exit code {done.returncode}; the input is in {folder}", flush=True)
        print(_told(done.stdout), flush=True)
        return 0
    executions, edges, kept = map(int, reached.groups())
    print(f"fuzz {target}: {executions} executions, {edges} edges covered, {kept} inputs in the corpus", flush=True)
    return executions


def _told(log: str) -> str:
    """The traceback and the input of a broken promise, out of libFuzzer's log."""
    quiet = re.compile(r"^(INFO|WARNING|#\d+\s|stat::|0x)")
    return "\n".join(line for line in log.splitlines() if not quiet.match(line))[-4000:]


def _dictionary(words: Iterable[str]) -> str:
    """The words as libFuzzer reads them: one a line in quotes, everything unusual as bytes."""
    plain = {byte: chr(byte) for byte in range(32, 127) if chr(byte) not in '"\\'}
    return "".join(f'"{"".join(plain.get(byte, f"{_X}{byte:02x}") for byte in word.encode())}"\n' for word in words)


_X = "\\x"
