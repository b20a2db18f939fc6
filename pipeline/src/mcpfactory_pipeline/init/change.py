"""One thing that is done, or told, when a folder becomes a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = ["ADD", "BLOCKED", "NOTE", "WHEELS", "WRITE", "SetupChange"]

WRITE: Final = "write"  # a file that is not there
ADD: Final = "add"  # lines at the end of a file that is there
WHEELS: Final = "wheels"  # the factory's own, into a folder
NOTE: Final = "tell"  # nothing is done: a person may want to
BLOCKED: Final = "blocked"  # nothing can be done as long as it is there


@dataclass(frozen=True, slots=True)
class SetupChange:
    """What happens to a path; `text` is what is written or added, `note` what a person should know."""

    path: str
    action: str
    text: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"path": self.path, "action": self.action, "note": self.note}
