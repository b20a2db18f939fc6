"""Logging of commands to stderr: `mcpfactory -v`, or the variable MCPFACTORY_LOG."""

from __future__ import annotations

import logging
import shlex
import sys
from typing import Any, Final

from mcpfactory import output
from mcpfactory_runtime.errors import Exit

_LEVELS: Final = ("debug", "info", "warning", "error")
_log: Final = logging.getLogger(__name__)


def log_to_stderr(level: str) -> None:
    """Print log records of this level and above, and at `info` every process that is started.

    Ends the command if there is no such level.
    """
    if level.lower() not in _LEVELS:
        output.fail(f"MCPFACTORY_LOG: unknown level {level!r}", f"use one of {', '.join(_LEVELS)}", Exit.USAGE)
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=level.upper(), format=form, datefmt="%H:%M:%S", stream=sys.stderr)
    sys.addaudithook(_log_process)


def _log_process(event: str, arguments: tuple[Any, ...]) -> None:
    """Log the words of a command that is started; processes are started in many modules, and by libraries."""
    if event == "subprocess.Popen":
        words = arguments[1] if isinstance(arguments[1], list | tuple) else [arguments[1]]
        _log.info("start %s", shlex.join(str(word) for word in words))
