"""Lists and resources kept as long as the server says that they may be (utilities/caching, newest revision), or until it says that they changed."""

from __future__ import annotations

import copy
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from mcpfactory_runtime.types import Json

_MOST: Final = 1000  # results
# notification → methods whose results may have changed
_CHANGED: Final = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
_UPDATED: Final = "notifications/resources/updated"


class ResultCache:
    """The results of one client. Event loop only.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[float, Json]] = OrderedDict()

    def find(self, method: str, params: Json | None) -> Json | None:
        """Return the result of an equal request, if it still counts."""
        kept = self._kept.get(_key(method, params))
        return copy.deepcopy(kept[1]) if kept is not None and self._clock() < kept[0] else None

    def keep(self, method: str, params: Json | None, result: Json) -> None:
        """Keep a result for as long as it says."""
        lifetime = result.get("ttlMs")
        if not isinstance(lifetime, int | float) or not lifetime > 0 or result.get("resultType") != "complete":
            return
        key = _key(method, params)
        self._kept[key] = (self._clock() + lifetime / 1000, copy.deepcopy(result))
        self._kept.move_to_end(key)
        if len(self._kept) > _MOST:
            self._kept.popitem(last=False)

    def notified(self, method: str, params: Json) -> None:
        """Forget what changed."""
        if method == _UPDATED:
            self._kept.pop(_key("resources/read", {"uri": params.get("uri")}), None)
        methods = _CHANGED.get(method, ())
        for key in [key for key in self._kept if key[0] in methods]:
            del self._kept[key]

    def ended(self, error: Exception | None) -> None:
        """Forget everything."""
        self._kept.clear()


def _key(method: str, params: Json | None) -> tuple[str, str]:
    given = {name: value for name, value in (params or {}).items() if name != "_meta"}
    return method, json.dumps(given, sort_keys=True, default=str)
