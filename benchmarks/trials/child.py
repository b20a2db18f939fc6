"""One command on a workspace of a trial: `python -m benchmarks.trials.child KILL ROOT run|COMMAND…`.

`KILL` is the number of the file operation before which this process kills itself with SIGKILL, 0 for never. Operations are
those that change something: opening to write, renaming, removing, making a folder, cutting a file. `run` is
`mcpfactory pipeline run` with the cheap stages; anything else is handed to `mcpfactory pipeline` as it is. The exit code is
the command's; the last line on stderr says how many operations there were.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Any

from benchmarks.trials.ground import CHEAP
from mcpfactory.main import main as mcpfactory
from mcpfactory_pipeline.report import make_reporter
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.workspace.workspace import Workspace

_CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}


def count_operations(kill: int) -> itertools.count[int]:
    """Counts this process's changes to files from now on, and ends it before the one that is named."""
    numbers, last = itertools.count(1), [0]

    def hook(event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if not writes and event not in _CHANGES:
            return
        last[0] = next(numbers)
        if last[0] == kill:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return numbers


def act(root: Path, words: list[str]) -> int:
    """Does what the words say and gives the exit code."""
    os.chdir(root)
    if words[0] != "run":
        sys.argv = ["mcpfactory", "pipeline", *words]
        try:
            mcpfactory()
        except SystemExit as end:
            return int(end.code or 0)
        return 0
    names = [word for word in words[1:] if word != "--force"]
    reporter = make_reporter("plain")
    force = "--force" in words
    outcome = run_pipeline(Workspace.find(root), names, force=force, jobs=2, reporter=reporter, stages=CHEAP)
    return 5 if outcome.errored or outcome.interrupted else int(outcome.failed)


def main() -> None:
    """Acts, and counts."""
    kill, root, *words = sys.argv[1:]
    numbers = count_operations(int(kill))
    code = act(Path(root), words)
    print(f"operations {next(numbers) - 1}", file=sys.stderr, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
