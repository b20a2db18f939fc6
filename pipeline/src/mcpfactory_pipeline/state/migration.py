"""State files of older schemas. Nothing is converted: what they said is compared, and the history says the rest.

Schema 1 knew no decisions: no holds, approvals or retirement, and forgot which candidates a channel offered before.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from mcpfactory_pipeline.state.state import ServerState

__all__ = ["OLDER", "matches_older", "older_data"]

OLDER: Final = (1,)
# A thousand files are asked before one is read whole.
_PERHAPS: Final = re.compile(rf'"state":\s*(?:{"|".join(map(str, OLDER))})\b')
_LATER: Final = {"holds", "retired", "published", "publishing"}
_NEW: Final = {"candidates": ("facts", "channels", "approvals", "rejections"), "channels": ("before",)}


def older_data(text: str) -> dict[str, Any] | None:
    """Return the content of a state file of an older schema; None for any other text."""
    if not _PERHAPS.search(text):
        return None
    try:
        data = json.loads(text)
    except ValueError:
        return None
    return data if isinstance(data, dict) and data.get("state") in OLDER else None


def matches_older(data: dict[str, Any], state: ServerState) -> bool:
    """Whether an older file says what this state says, in the fields that it knew. It kept fewer candidates."""
    now = json.loads(json.dumps(state.to_json()))
    for table, added in _NEW.items():
        now[table] = {
            name: {key: value for key, value in record.items() if key not in added}
            for name, record in now[table].items()
        }
    kept = data.get("candidates")
    if not isinstance(kept, dict):
        return False
    now["candidates"] = {name: record for name, record in now["candidates"].items() if name in kept}
    return data == {**{key: now[key] for key in now if key not in _LATER}, "state": data["state"]}
