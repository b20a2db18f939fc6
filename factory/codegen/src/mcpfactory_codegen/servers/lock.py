"""`.mcpfactory/lock.json` of a server: who owns each file, what was written, and the text to merge against.

Canonical text: sorted, no clock, host or absolute path, so that equal work gives equal bytes and a diff is a review.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from mcpfactory_runtime.errors import McpfactoryError

__all__ = ["LOCK", "Lock", "LockEntry", "LockError", "Owner", "fingerprint"]

LOCK: Final = ".mcpfactory/lock.json"
_VERSION: Final = 1

Owner = Literal["machine", "person", "document"]
"""machine: rewritten whole; person: written once, merged later; document: the API document as it was given."""


class LockError(McpfactoryError):
    """The lock cannot be read. `hint` says how to repair it."""


@dataclass(frozen=True, slots=True)
class LockEntry:
    """One file: its owner, the SHA-256 of what was written, and for a person's file that text itself."""

    owner: Owner
    sha256: str
    pristine: str | None = None


@dataclass(frozen=True, slots=True)
class Lock:
    """The files that mcpfactory wrote, by path below the server's folder (with `/`).

    `template` is the version of the template that the person's files were made from, or last merged with; "" when unknown.
    """

    files: Mapping[str, LockEntry] = field(default_factory=dict)
    template: str = ""

    @classmethod
    def read(cls, folder: Path) -> Lock:
        """Return the lock of a server's folder; empty when there is none.

        Raises:
            LockError: the file is not a lock of this version.
        """
        path = folder / LOCK
        if not path.exists():
            return cls()
        try:
            data = json.loads(path.read_bytes())
            if data["lock"] != _VERSION:
                raise LockError(f"{path}: lock version {data['lock']} is not known", "update mcpfactory")
            files = {name: LockEntry(**entry) for name, entry in data["files"].items()}
            return cls(files, str(data.get("template", "")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "restore it from version control, or delete it: the next run writes it anew and keeps your files"
            raise LockError(f"{path} is damaged ({type(error).__name__})", hint) from None

    def text(self) -> str:
        """Return the canonical text."""
        files: dict[str, dict[str, Any]] = {}
        for path, entry in self.files.items():
            files[path] = {"owner": entry.owner, "sha256": entry.sha256}
            if entry.pristine is not None:
                files[path]["pristine"] = entry.pristine
        data = {"lock": _VERSION, "files": files} | ({"template": self.template} if self.template else {})
        return json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def fingerprint(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
