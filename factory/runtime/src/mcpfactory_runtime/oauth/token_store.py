"""Storage of login tokens: the system's keyring, or files that only their owner can read.

The methods block, so call them in a thread. A store that cannot be used raises OAuthError. Stored values are never
logged.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from mcpfactory_runtime.oauth.steps_and_metadata import OAuthError
from mcpfactory_runtime.types import Json

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_SERVICE: Final = "mcpfactory"
_POLL: Final = 0.02  # seconds between attempts to lock
_LOCK_TIMEOUT: Final = 60.0  # seconds to wait for a lock


class TokenStore(Protocol):
    """Storage of JSON objects by key. A key is a file name without suffix, and `folder` contains the lock files."""

    folder: Path

    def read(self, key: str) -> Json | None:
        """Return the stored value, or None."""

    def write(self, key: str, value: Json) -> None:
        """Store a value atomically."""

    def delete(self, key: str) -> bool:
        """Remove a value, and return True if the value existed."""


class FileStore:
    """Storage with one file of mode 600 per key, in a directory of mode 700."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, key: str) -> Json | None:
        """See TokenStore."""
        _refuse_shared(self.folder)
        try:
            value = json.loads(self._path(key).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unusable(self.folder, error) from None
        except ValueError:
            raise OAuthError("no_store", f"{self._path(key)} is damaged\nhint: remove it, and log in again") from None
        return value if isinstance(value, dict) else None

    def write(self, key: str, value: Json) -> None:
        """See TokenStore. The old value remains if the process dies during the write."""
        try:
            _make_folder(self.folder)
            descriptor, name = tempfile.mkstemp(dir=self.folder, prefix=f".{key}.")  # with mode 600
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(value, file)
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(self._path(key))
            except BaseException:
                with suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise _unusable(self.folder, error) from None

    def delete(self, key: str) -> bool:
        """See TokenStore."""
        try:
            self._path(key).unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _unusable(self.folder, error) from None
        return True

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


class KeyringStore:
    """Storage in the system's keyring."""

    def __init__(self, folder: Path, keyring: Any) -> None:
        self.folder = folder
        self._keyring = keyring

    def read(self, key: str) -> Json | None:
        """See TokenStore."""
        text = self._do("get_password", key)
        try:
            value = json.loads(text) if text else None
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def write(self, key: str, value: Json) -> None:
        """See TokenStore."""
        self._do("set_password", key, json.dumps(value))

    def delete(self, key: str) -> bool:
        """See TokenStore."""
        if self.read(key) is None:
            return False
        self._do("delete_password", key)
        return True

    def _do(self, function: str, *arguments: str) -> Any:
        try:
            return getattr(self._keyring, function)(_SERVICE, *arguments)
        except Exception as error:  # noqa: BLE001 - each backend raises its own errors
            raise OAuthError(
                "no_store",
                f"the system's keyring cannot be used ({type(error).__name__})\nhint: unlock it, or store "
                "tokens in files with MCPFACTORY_TOKEN_STORE=file",
            ) from None


def open_store(environ: Mapping[str, str]) -> TokenStore:
    """Return the store that MCPFACTORY_TOKEN_STORE selects: `keyring`, `file`, or a directory.

    The default is the keyring if available, or else files.
    """
    choice = environ.get("MCPFACTORY_TOKEN_STORE", "")
    if choice not in ("", "keyring", "file"):
        return FileStore(Path(choice).expanduser())
    folder = _user_folder(environ) / "tokens"
    keyring = None if choice == "file" else _keyring()
    if choice == "keyring" and keyring is None:
        raise OAuthError(
            "no_store", "no keyring is available\nhint: pip install keyring, or leave MCPFACTORY_TOKEN_STORE unset"
        )
    return FileStore(folder) if keyring is None else KeyringStore(folder, keyring)


@asynccontextmanager
async def locked(store: TokenStore, key: str) -> AsyncIterator[None]:
    """Hold the lock of a key against other tasks and processes.

    The operating system releases the lock if the process dies.
    """
    try:
        _make_folder(store.folder)
        descriptor = os.open(store.folder / f"{key}.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise _unusable(store.folder, error) from None
    try:
        deadline = asyncio.get_running_loop().time() + _LOCK_TIMEOUT
        while not _try_lock(descriptor):
            if asyncio.get_running_loop().time() > deadline:
                raise OAuthError(
                    "no_store", f"another process has been renewing this login for {_LOCK_TIMEOUT:g} seconds"
                )
            await asyncio.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_shared(folder)


def _refuse_shared(folder: Path) -> None:
    """Raise OAuthError for a directory to which other users can write, because they could plant tokens there."""
    try:
        found = folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if sys.platform == "win32":
        return
    if os.geteuid() and found.st_uid not in (os.geteuid(), 0):
        raise OAuthError(
            "no_store",
            f"{folder}, where tokens are stored, belongs to another user\nhint: set MCPFACTORY_TOKEN_STORE to "
            "a folder of yours",
        )
    if found.st_mode & 0o022:
        raise OAuthError(
            "no_store",
            f"other users can write to {folder}, where tokens are stored (its mode is "
            f"{stat.S_IMODE(found.st_mode):o})\nhint: remove files of other users from this folder, then: "
            f"chmod go= {folder}; "
            "or set MCPFACTORY_TOKEN_STORE to a new folder",
        )


def _unusable(folder: Path, error: OSError) -> OAuthError:
    return OAuthError(
        "no_store",
        f"tokens cannot be stored in {folder}: {error.strerror}\nhint: set MCPFACTORY_TOKEN_STORE to a folder of yours",
    )


def _user_folder(environ: Mapping[str, str]) -> Path:
    try:
        if sys.platform == "win32":
            return Path(environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / _SERVICE
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Application Support" / _SERVICE
        return Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / _SERVICE
    except RuntimeError:
        raise OAuthError(
            "no_store", "this user has no home folder\nhint: set MCPFACTORY_TOKEN_STORE to a folder"
        ) from None


def _keyring() -> Any:
    try:
        keyring = import_module("keyring")  # an optional package, slow to import
        usable = keyring.get_keyring().priority > 0
    except Exception:  # noqa: BLE001 - the package is missing, or a backend fails
        return None
    return keyring if usable else None
