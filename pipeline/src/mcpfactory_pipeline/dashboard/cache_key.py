"""The secret by which a dashboard knows what it kept itself: random, of one person, and outside of every workspace.

Whoever may write into a workspace can write its cache, too, and would say what pages show: without this key it counts for nothing.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.files import move_into_place, open_own, write_temporary
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
    except (OSError, RuntimeError):  # also where nobody knows a person's home
        return b""


def _read(file: Path) -> bytes:
    with open_own(file, file.parent) as stream:
        found, secret = os.fstat(stream.fileno()), stream.read(_BYTES + 1)
    if os.name == "posix" and (found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077):
        return b""
    return secret if len(secret) == _BYTES else b""


def _made(file: Path) -> bytes:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = secrets.token_bytes(_BYTES)
    whole = write_temporary(file, secret, mode=0o600)
    try:
        os.link(whole, file)  # a name for all of it, or none
    except FileExistsError:  # another process was first
        return _read(file)
    except OSError:  # no hard links here: of two processes that are first, the later one's key stays
        move_into_place(whole, file)
        return _read(file)
    finally:
        whole.unlink(missing_ok=True)
    return secret
