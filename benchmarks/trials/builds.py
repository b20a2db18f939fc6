"""The same sources, built in other folders, on other days, by other people: the same bytes.

Every place differs in all that a build could pick up by mistake: the path and its depth, the times of the files, the clock's
zone and day (`SOURCE_DATE_EPOCH`), language, umask, order of creation, and what the folders above say is to be left out.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.exam.outcome import Outcome, judged
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.init import init_workspace
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["run"]

_ZONES, _LANGUAGES = ("Asia/Tokyo", "America/New_York", "UTC"), ("C", "de_DE.UTF-8", "C.UTF-8")


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Builds one server in `times` places; the figure says how many different bytes there were."""
    choose = random.Random(seed)
    create_server(folder, name="hello", template="minimal")
    found: dict[str, set[str]] = {}
    for number in range(times):
        space = _place(folder / "/".join("deep" for _ in range(number)) / f"place {number}", folder / "hello", choose)
        print(f"place {number + 1}: {_build(space, choose)}", flush=True)
        state = Store(space).state("hello")
        for name, content in state.candidates[str(state.candidate)].files.items():
            found.setdefault(name, set()).add(content)
    print(json.dumps({name: sorted(contents) for name, contents in found.items()}, indent=2))
    figure = f"{times} places; " + ", ".join(f"{name}: {len(contents)} different" for name, contents in found.items())
    kinds = {Path(name).suffix for name in found}
    return judged(figure, good=kinds == {".whl", ".gz"} and all(len(contents) == 1 for contents in found.values()))


def _place(root: Path, server: Path, choose: random.Random) -> Workspace:
    """A workspace with a copy of the server, written in another order and at another time."""
    space = init_workspace(root, git=True)
    files = [path for path in server.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    choose.shuffle(files)
    for file in files:
        copy = root / "servers/hello" / file.relative_to(server)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        moment = choose.randint(400_000_000, 2_000_000_000)
        os.utime(copy, (moment, moment))
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)  # what is tracked is built, whatever is ignored later
    rules = root / ".gitignore"
    rules.write_text(rules.read_text() + choose.choice(("", "*.md\n", "server.py\n")))
    return space


def _build(space: Workspace, choose: random.Random) -> str:
    """The stage `build`, by the command line, as somebody else; gives what was different."""
    epoch, mask = choose.randint(400_000_000, 2_000_000_000), choose.choice((0o022, 0o077, 0o002))
    other = {"SOURCE_DATE_EPOCH": str(epoch), "TZ": choose.choice(_ZONES), "LC_ALL": choose.choice(_LANGUAGES)}
    subprocess.run(
        [sys.executable, "-m", "benchmarks.trials.command", "pipeline", "run", "--until", "build"], cwd=space.root, umask=mask,
        env={**os.environ, **other}, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return f"{space.root.name}, umask {mask:03o}, {other}"
