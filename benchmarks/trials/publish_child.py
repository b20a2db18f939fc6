"""`mcpfactory …` that dies: `python -m benchmarks.trials.publish_child KILL ROOT COMMAND…`.

`KILL` is the number of the moment at which this process kills itself with SIGKILL, 0 for never. Moments are before each operation
that changes a file, before each program is started (uv uploads packages), and before and after each request. Where KILL is not 0, the
last line on stderr says how many there were.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.trials.mutants import apply_mutant
from mcpfactory.main import main as mcpfactory
from mcpfactory_pipeline.publish.http import HttpClient, HttpResponse

_CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "subprocess.Popen"}


class Death:
    """Counts moments, and ends the process at one of them."""

    def __init__(self, kill: int) -> None:
        self._kill, self._numbers, self.last = kill, count(1), 0

    def moment(self) -> None:
        """One more."""
        self.last = next(self._numbers)
        if self.last == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        """For `sys.addaudithook`."""
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or event in _CHANGES:
            self.moment()


def main() -> None:
    """Runs the command."""
    kill, root, *words = sys.argv[1:]
    death, request = Death(int(kill)), HttpClient.request

    def dying(wire: HttpClient, *args: Any, **options: Any) -> HttpResponse:
        death.moment()
        answer = request(wire, *args, **options)
        death.moment()
        return answer

    if int(kill):
        HttpClient.request = dying  # type: ignore[method-assign, assignment] # the moments between requests cannot be met from outside
        sys.addaudithook(death.hook)
    apply_mutant()
    os.chdir(Path(root))
    sys.argv = ["mcpfactory", *words]
    code: Any = 0
    try:
        mcpfactory()
    except SystemExit as end:
        code = end.code
    if int(kill):
        print(f"moments {death.last}", file=sys.stderr, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
