"""Third-party servers in a workspace: reading commands must run none of their code."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from tests.attacks.http_target import HarmError
from tests.system import is_running


def _workspace(folder: Path) -> Path:
    """Return a workspace with a server whose interpreter and modules record that they ran, and their environment."""
    space, server = folder / "space", folder / "space/servers/evil"
    (server / "src/evil_mcp").mkdir(parents=True)
    (server / ".venv/bin").mkdir(parents=True)
    (space / "mcpfactory.toml").write_text('[workspace]\nname = "w"\n')
    (server / "mcpfactory.toml").write_text(
        '[server]\nname = "evil"\npackage = "evil_mcp"\nenvironment = ["AWS_SECRET"]\n'
    )
    (server / "pyproject.toml").write_text('[project]\nname = "evil-mcp"\nversion = "1"\nrequires-python = ">=3.11"\n')
    note = f'import os; open({str(folder / "ran")!r}, "a").write(os.getcwd() + "\\n" + repr(dict(os.environ)))\n'
    for module in ("json.py", "sitecustomize.py", "evil_mcp/__init__.py", "evil_mcp/__main__.py"):
        (server / "src" / module).write_text(note)
    python = server / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\n(pwd; env) >> "{folder}/ran"\n')
    python.chmod(0o755)
    return space


def _inspect(folder: Path, *options: str) -> tuple[subprocess.CompletedProcess[str], str]:
    space = _workspace(folder)
    done = subprocess.run(
        [sys.executable, "-m", "mcpfactory", "inspect", "evil", *options],
        cwd=space,
        env={
            **os.environ,
            "AWS_SECRET": "s3cret",
            "MCPF_EVIL_BASE_URL": "s3cret",
            "MCPFACTORY_CACHE_DIR": str(folder / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    ran = folder / "ran"
    return done, ran.read_text() if ran.exists() else ""


def _looked_at(folder: Path) -> str:
    done, ran = _inspect(folder)
    if ran or done.returncode != 4 or "--start runs that code" not in done.stderr:
        raise HarmError(f"it ran {ran!r}; {done.stderr}")
    return done.stderr.strip()


def _started(folder: Path) -> str:
    done, ran = _inspect(folder, "--start")
    if "running its code" not in done.stderr or "s3cret" in ran or str(folder) in ran.splitlines()[0]:
        raise HarmError(f"it ran as {ran!r}; {done.stderr}")
    return "it ran elsewhere, without a variable of ours"


_CLINGING = """
import os, subprocess, sys, time
if sys.argv[1] == "stay":
    open(sys.argv[2], "a").write(f"{os.getpid()}\\n")
    time.sleep(120)
else:
    subprocess.Popen([sys.executable, __file__, "stay", sys.argv[2]], start_new_session=True)
    sys.stdin.read()
"""


def _clung(folder: Path) -> str:
    program, pids = folder / "server.py", folder / "pids"
    program.write_text(_CLINGING)
    command = shlex.join([sys.executable, str(program), "serve", str(pids)])
    done = subprocess.run(
        [sys.executable, "-m", "mcpfactory", "validate", "--command", command, "--timeout", "3"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    left = [pid for pid in map(int, pids.read_text().split()) if is_running(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if left or "Event loop is closed" in done.stderr or "Traceback" in done.stderr:
        raise HarmError(f"{len(left)} processes outlived the examination; {done.stderr}")
    return f"exit code {done.returncode}, and no process is left"


ROWS = {
    "a server without a report that is looked at": ("nothing runs, and it is said", _looked_at),
    "one that is started to be asked": ("elsewhere, with a clean environment", _started),
    **(
        {"one whose children make themselves a session": ("all are ended with the examination", _clung)}
        if sys.platform == "linux"
        else {}
    ),
}
