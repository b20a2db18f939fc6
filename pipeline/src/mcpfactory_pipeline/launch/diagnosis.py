"""Diagnosis of a server that does not start, as an error for its owner: from its stderr or a client's error."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ServerError
from mcpfactory_pipeline.isolation.levels import Sandbox
from mcpfactory_pipeline.launch import start

_SCRIPT: Final = Path(start.__file__)
STARTERS: Final = _SCRIPT.parent  # what `package_command` has to be able to read
_TOLD: Final = re.compile(r"^error: (?P<what>.+(?:\n {2,}.*)*)\nhint: (?P<hint>.+)$", re.MULTILINE)
_TRACE: Final = "Traceback (most recent call last):\n"
_FRAME: Final = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in .+\n {4}(?P<code>.+)$', re.MULTILINE)
_RAISED: Final = re.compile(r"^[\w.]+(?:: .*)?$", re.MULTILINE)
_PATIENCE: Final = 15.0  # seconds until a server whose input has ended must have ended


def package_command(python: Path, package: str, folder: Path) -> list[str]:
    """Return the command that runs the package of the server in `folder` with an interpreter, and explains why it does not start."""
    return [str(python), "-P", str(_SCRIPT), package, str(folder)]


def read_failure(text: str) -> ServerError | None:
    """Return the error that `start.py` wrote to stderr, or None if the text does not contain one."""
    found = _TOLD.search(text)
    return ServerError(found["what"], hint=found["hint"]) if found else None


def one_line(mistake: ServerError) -> str:
    """Return a mistake as the message of a stage."""
    return f"{str(mistake).splitlines()[0]}; hint: {mistake.hint}"


def client_failure(error: Exception, server: str = "") -> ServerError:
    """Return a client's error as one for the owner of the server; `server` is its name, where that is known."""
    if (stated := read_failure(str(error))) is not None:
        return stated
    kind, called, name = type(error).__name__, server or "the server", server or "NAME"
    if kind == "ProtocolError":
        return ServerError(
            f"{called} does not speak MCP: {error}", hint="on stdio nothing but MCP goes to stdout: print to sys.stderr"
        )
    if isinstance(error, TimeoutError):
        return ServerError(
            f"{called} did not answer in time" + (f": {error}" if str(error) else ""),
            hint=f"mcpfactory validate {name} shows what it does when it starts; --timeout waits longer",
        )
    if str(error) == "the server ended with exit code 0":
        return ServerError(
            f"{called} ended before it answered, and without an error", hint="main() must call server.run()"
        )
    return ServerError(
        f"{server}: {error}" if server else str(error), hint=f"mcpfactory run {name} shows all that it says"
    )


def find_tool_failure(log: str, server: str, folder: Path) -> ServerError | None:
    """Return the location in the server's code where its last tool failed, from its log; None if unknown."""
    _, found, trace = log.rpartition(_TRACE)
    frames = [frame for frame in _FRAME.finditer(trace) if Path(frame["file"]).is_relative_to(folder)]
    raised = _RAISED.search(trace)
    if not (found and frames and raised):
        return None
    place = f"servers/{server}/{Path(frames[-1]['file']).relative_to(folder).as_posix()}:{frames[-1]['line']}"
    hint = "correct that line of the server"
    if raised[0].startswith("ModuleNotFoundError"):
        hint = f"add the package that has it to [project] dependencies in servers/{server}/pyproject.toml"
    return ServerError(f"{place}: {raised[0]}\n    {frames[-1]['code']}", hint=hint)


def diagnose_start(python: Path, package: str, folder: Path, *, sandbox: Sandbox) -> ServerError | None:
    """Start a server that did not start once more, in a sandbox without input, and return what keeps it from it; None where it starts."""
    try:
        done = subprocess.run(
            sandbox.command(package_command(python, package, folder)),
            cwd=sandbox.folder,
            env=dict(sandbox.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_failure(done.stderr) if done.returncode == start.START_FAILED else None
