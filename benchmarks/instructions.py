"""Instructions per call, counted by callgrind: a figure that does not depend on how busy the machine is.

A server answers N and then 3 N calls under valgrind; the difference divided by 2 N is what one call costs. It changes with
the Python that runs it and with the code, and with nothing else.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.wire import call, initialize

__all__ = ["run"]

SERVER = Path(__file__).resolve().parent / "peers/servers/ours.py"
CALLS = 500


def run() -> None:
    """Prints the figure for both lifecycles."""
    if not shutil.which("valgrind"):
        subprocess.run("apt-get install -y -qq valgrind", shell=True, check=False, stdout=subprocess.DEVNULL)
    if not shutil.which("valgrind"):
        raise SystemExit("error: valgrind is not installed\nhint: install your system's package valgrind")
    _counted(1, modern=False)  # whatever a first start compiles and writes is not counted
    for name, modern in (("handshake", False), ("per request", True)):
        few, many = _counted(CALLS, modern=modern), _counted(3 * CALLS, modern=modern)
        print(f"instructions per call over stdio, lifecycle {name}: {(many - few) / (2 * CALLS):,.0f}", flush=True)


def _counted(calls: int, *, modern: bool) -> int:
    """Instructions that the server executes to answer so many calls, one after the other, from start to end."""
    first = [] if modern else initialize()
    numbered = [call(number, "add", {"a": 1, "b": 2}, modern=modern) for number in range(1, calls + 1)]
    lines = [json.dumps(message).encode() + b"\n" for message in (*first, *numbered)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin"},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for line in lines:
            process.stdin.write(line)
            process.stdin.flush()
            if b'"id"' in line:
                process.stdout.readline()
        process.stdin.close()
        process.wait(60)
        return int(re.findall(r"^(?:summary|totals): (\d+)", out.read_text(), re.M)[0])
