"""Renders one template by copier; the only module that imports it. As a program it does so within limits of time and memory.

Exit code 0: rendered. 3: the template is broken or wants to run something; standard output says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_REFUSED: Final = 3
_SYSTEM: Final = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
SECONDS: Final = 20
_BYTES: Final = 1 << 30  # of memory
_FILE: Final = 1 << 24  # bytes of one rendered file


class RenderError(ValueError):
    """A template cannot be rendered; the message says why."""


def render_here(template: Path, folder: Path, data: Mapping[str, Any]) -> None:
    """Render a template that is trusted, as ours are.

    Raises:
        RenderError: it is broken, or wants to run something.
    """
    from copier import run_copy  # noqa: PLC0415 - 600 modules, needed only when a template is rendered
    from copier.errors import CopierError  # noqa: PLC0415 - as above

    try:
        run_copy(str(template), folder, dict(data), defaults=True, overwrite=True, quiet=True, unsafe=False)
    except (CopierError, ValueError, OSError) as error:
        raise RenderError(str(error) or type(error).__name__) from None


def render_apart(template: Path, folder: Path, data: Mapping[str, Any], seconds: float = SECONDS) -> None:
    """Render an untrusted template in a separate process with limited time and memory.

    Raises:
        RenderError: as `render_here`; or a limit of time or memory is exceeded.
    """
    program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import _main; sys.exit(_main(*sys.argv[1:]))"
    command = [sys.executable, "-I", "-c", program, str(template), str(folder)]
    with tempfile.TemporaryDirectory(prefix="mcpfactory-home-") as home:
        system = {name: value for name in _SYSTEM if (value := os.environ.get(name))}
        environ = {**system, "HOME": home, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
        try:
            done = subprocess.run(
                command, input=json.dumps(data).encode(), env=environ, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise RenderError(f"it was not done after {seconds:g} seconds") from None
    if done.returncode == _REFUSED:
        raise RenderError(done.stdout.decode(errors="replace"))
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        taken = done.returncode < 0 or not last or "MemoryError" in last
        raise RenderError("it takes too much memory or time" if taken else last)


def _limit() -> None:
    """Bound what this process may take, where the system can."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE, _FILE))


def _main(template: str, folder: str) -> int:
    data = json.load(sys.stdin)
    _limit()
    try:
        render_here(Path(template), Path(folder), data)
    except RenderError as error:
        sys.stdout.write(str(error))
        return _REFUSED
    return 0
