"""The secret by which a dashboard knows what it kept itself: random, of one person, and outside of every workspace.

Whoever may write into a workspace can write its cache, too, and would say what pages show: without this key it counts for nothing.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import open_own, replace_file
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.clients.files import this_machine

__all__ = ["cache_key"]

_BYTES: Final = 32


def cache_key(root: Path) -> bytes:
    """Return the secret of whoever runs this, made where there is none yet; nothing where it cannot be kept from others, or is below `root`."""
    file = this_machine(os.environ).state.parent / "dashboard.key"
    try:
        if file.parent.resolve().is_relative_to(root.resolve()):
            return b""
        try:
            return _read(file)
        except FileNotFoundError:
            return _made(file)
    except (OSError, RuntimeError, StateError):  # also where nobody knows a person's home
        return b""


def _read(file: Path) -> bytes:
    with open_own(file, file.parent) as stream:
        found, secret = os.fstat(stream.fileno()), stream.read(_BYTES + 1)
    if os.name == "posix" and (found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077):
        return b""
    return secret if len(secret) == _BYTES else b""


def _made(file: Path) -> bytes:
    """Return a new secret; that of another process where one was first."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file_lock(file.with_name(f"{file.name}.lock")):
        try:
            return _read(file)
        except FileNotFoundError:
            secret = secrets.token_bytes(_BYTES)
            replace_file(file, secret, mode=0o600)
            return secret
