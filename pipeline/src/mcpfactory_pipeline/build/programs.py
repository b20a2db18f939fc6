"""Run programs for a stage with a log and a limited environment."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import uv

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.isolation.levels import PLAIN, Sandbox

EPOCH: Final = "1580601600"  # SOURCE_DATE_EPOCH for reproducible wheels; same value as hatchling's default

# Additional variables for uv: package indexes and network access.
_FETCHING: Final = re.compile(
    r"HOME|USERPROFILE|APPDATA|LOCALAPPDATA|XDG_.*|UV_.*|SSL_CERT_(FILE|DIR)|NETRC|(HTTPS?|ALL|NO)_PROXY", re.I
)
_NOT_FOR_UV: Final = re.compile(r"UV_(PYTHON|PROJECT|WORKING_DIR.*|OFFLINE_.*|PROJECT_ENVIRONMENT|PUBLISH_.*)", re.I)
# Additional variables for npm to reach a registry; tokens are in a file that npm finds through HOME.
_OF_NPM: Final = re.compile(
    r"NPM_CONFIG_(REGISTRY|@.+:REGISTRY|CACHE|USERCONFIG|CAFILE|(HTTPS?_|NO)?PROXY)|NODE_EXTRA_CA_CERTS", re.I
)
# Additional variables for a stage's process: the import path of our code, and the actor.
_OF_A_JOB: Final = re.compile(
    r"PYTHON\w*|VIRTUAL_ENV|CONDA_PREFIX|LD_LIBRARY_PATH|DYLD_\w+|PATHEXT|WINDIR|PROGRAM\w+|USER|USERNAME|LOGNAME"
    r"|MCPFACTORY_(ACTOR|CACHE_DIR)",
    re.I,
)
# Messages of uv about a failure of the tool or the network, not about bad input.
_MACHINERY_BROKE: Final = re.compile(
    r"error sending request|failed to fetch|dns error|connection (refused|reset)|timed out|no space left|permission denied"
    r"|could not connect|\bnetwork\b|\boffline\b|temporary failure|usage: uv",
    re.I,
)


class ToolRejectedInputError(Exception):
    """Error of a tool that rejected its input. The message is the end of the tool's output."""


def run_program(
    command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], sandbox: Sandbox | None = None
) -> int:
    """Run a program, log its output, and return its exit code."""
    print(f"$ {shlex.join(command)}", flush=True)  # noqa: T201 - a job's stdout is the log of its stage
    try:
        words = sandbox.command(command) if sandbox else command
        return subprocess.run(words, cwd=cwd, env=dict(environ), stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise StageError(
            f"{command[0]} cannot be started: {error.strerror}", hint="install the program, or correct the command"
        ) from error


def run_and_capture_output(
    command: Sequence[str], cwd: Path, environ: Mapping[str, str], sandbox: Sandbox, *, log: bool = True
) -> tuple[int, str]:
    """Run a program in a sandbox, and return its exit code and output."""
    try:
        return _captured(command, sandbox.command(command), cwd, environ, log=log)
    except OSError as error:
        raise StageError(
            f"{command[0]} cannot be started: {error.strerror}", hint="install the program, or correct the command"
        ) from error


def _captured(
    shown: Sequence[str], command: Sequence[str], cwd: Path, environ: Mapping[str, str], *, log: bool
) -> tuple[int, str]:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if log and (done.stdout or done.returncode):  # a silent success would only hide the result of the stage
        print(f"$ {shlex.join(shown)}\n{done.stdout}", end="", flush=True)  # noqa: T201 - a job's stdout is the log of its stage
    return done.returncode, done.stdout


def uv_environ() -> dict[str, str]:
    """Return the environment for uv: basic variables, package indexes and network settings."""
    return {
        k: v for k, v in os.environ.items() if k in PLAIN or (_FETCHING.fullmatch(k) and not _NOT_FOR_UV.fullmatch(k))
    }


def npm_environ() -> dict[str, str]:
    """Return the environment for npm: basic variables and registry settings."""
    own = {name: value for name, value in os.environ.items() if _OF_NPM.fullmatch(name)}
    return {name: value for name, value in uv_environ().items() if not name.upper().startswith("UV_")} | own


def job_environ() -> dict[str, str]:
    """Return the environment for the process of a stage, without tokens."""
    more = {name: value for name, value in os.environ.items() if _OF_A_JOB.fullmatch(name)}
    return {**npm_environ(), **uv_environ(), **more}


def run_uv(
    *arguments: str,
    cwd: Path,
    python: Path = Path(sys.executable),
    environ: Mapping[str, str] | None = None,
    log: bool = True,
) -> None:
    """Run uv with an interpreter, by default the current interpreter.

    Raises:
        ToolRejectedInputError: uv rejected its input, for example a package that does not build.
        StageError: uv failed for another reason, for example without a network.
    """
    command = [uv.find_uv_bin(), *arguments, "--no-progress", "--color", "never", "--python", str(python)]
    code, said = _captured(command, command, cwd, {**uv_environ(), **(environ or {})}, log=log)
    if code == 0:
        return
    if code < 0 or _MACHINERY_BROKE.search(said):
        raise StageError(
            f"uv {arguments[0]} failed: {last_lines(said)}",
            hint="read the log, correct the cause, then run the command again",
        )
    raise ToolRejectedInputError(last_lines(said))


# The stack frames of a traceback, which are indented further than its first line. The exception follows them.
_FRAMES: Final = re.compile(r"^([ \t]*)Traceback \(most recent call last\):\n(?:\1[ \t]+.*\n)*", re.MULTILINE)


def last_lines(text: str, *, limit: int = 1_000) -> str:
    """Return the last complete lines of a program's output without stack frames, joined into one line.

    `…` marks omitted lines. The result has at least one line, and as many lines as fit into `limit` characters.
    """
    lines = [line.strip() for line in _FRAMES.sub("", text).splitlines() if line.strip()]
    kept: list[str] = []
    for line in reversed(lines):
        if kept and sum(map(len, kept)) + len(line) > limit:
            return "; ".join(["…", *reversed(kept)])
        kept.append(line)
    return "; ".join(reversed(kept))
