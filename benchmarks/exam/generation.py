"""A server made of a document in a process of its own: what that cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

MOST_SECONDS, MOST_MEGABYTES = 60, 1000
_MAKE = """
import sys
from pathlib import Path
from mcpfactory_codegen.servers.create import create_server
create_server(Path(sys.argv[1]), source=sys.argv[2], name='exam')
"""


class Making(NamedTuple):
    """Seconds by the clock and of the processor, the peak of the largest process in MB, and what went wrong ("": nothing)."""

    seconds: float
    processor: float
    megabytes: float
    errors: str

    @property
    def within(self) -> bool:
        """Whether it kept to the bounds, by the clock and in memory."""
        return self.seconds <= MOST_SECONDS and self.megabytes <= MOST_MEGABYTES


def make(folder: Path, document: Path) -> Making:
    """Make the server `exam` in a folder."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", _MAKE, str(folder), str(document)], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        errors = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Making(
        time.perf_counter() - began,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1000,
        errors[-600:] or "no reason was given" if process.returncode else "",
    )
