"""Pages of lists, and subscriptions to changes.

A cursor contains the key of a page's last item, and stays valid while other items change. Subscribers are handshake
sessions and `subscriptions/listen` streams.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError
from mcpfactory_runtime.protocol.jsonrpc import encode
from mcpfactory_runtime.protocol.methods import UPDATED
from mcpfactory_runtime.server.uri_template import normalize_uri
from mcpfactory_runtime.types import Json

_FEW: Final = 2_000  # maximum items of a list that is sent as one page without a size check
_LARGEST: Final = 8 * 1024 * 1024  # maximum bytes of a page of a longer list; most clients accept pages twice as large


def page(items: Mapping[str, Json], params: Json, size: int | None) -> tuple[list[Json], str | None]:
    """Return at most `size` items after the cursor in `params`, and the cursor of the next page.

    If `size` is None, a page has as many items as fit into a message that clients accept.
    """
    keys = list(items)
    start = 0
    last = decode_cursor(params)
    if last is not None:
        if last not in items:
            raise unknown_cursor()
        start = keys.index(last) + 1
    if size is None and len(keys) > _FEW:
        size = _readable([items[key] for key in keys[start:]])
    end = len(keys) if size is None else start + size
    chosen = keys[start:end]
    following = encode_cursor(chosen[-1]) if end < len(keys) else None
    return [items[key] for key in chosen], following


def _readable(items: Sequence[Json]) -> int:
    used = 0
    for count, item in enumerate(items):
        used += len(encode(item))
        if used > _LARGEST:
            return max(1, count)
    return len(items)


def encode_cursor(last: str) -> str:
    """Return the cursor for the page that begins after the item `last`."""
    return urlsafe_b64encode(last.encode()).decode()


def decode_cursor(params: Json) -> str | None:
    """Return the item's key from the cursor in `params`, or None without a cursor."""
    if "cursor" not in params:
        return None
    cursor = params["cursor"]
    if not isinstance(cursor, str):
        raise McpError(INVALID_PARAMS, "Invalid params: cursor must be a string")
    try:
        return urlsafe_b64decode(cursor.encode()).decode()
    except ValueError:
        raise unknown_cursor() from None


def unknown_cursor() -> McpError:
    """Return the error for a cursor that does not come from the list."""
    return McpError(INVALID_PARAMS, "Invalid params: unknown cursor. hint: start again without one")


# member of the filter → (notification, required server capability), see basic/patterns/subscriptions
KINDS: Final[dict[str, tuple[str, str]]] = {
    "toolsListChanged": ("notifications/tools/list_changed", "tools"),
    "promptsListChanged": ("notifications/prompts/list_changed", "prompts"),
    "resourcesListChanged": ("notifications/resources/list_changed", "resources"),
}


class NotificationListener(Protocol):
    """A possible subscriber to change notifications."""

    def publish(self, method: str, params: Json) -> None:
        """Forward the notification if this listener subscribed to such notifications."""


class NotificationHub:
    """Hub that forwards change notifications to all listeners. Use the hub only in the event loop."""

    def __init__(self) -> None:
        self._listeners: dict[NotificationListener, None] = {}

    def add(self, listener: NotificationListener) -> None:
        """Start notifying `listener`."""
        self._listeners[listener] = None

    def discard(self, listener: NotificationListener) -> None:
        """Stop notifying `listener`."""
        self._listeners.pop(listener, None)

    def publish(self, method: str, params: Json) -> None:
        """Notify every listener."""
        for listener in tuple(self._listeners):
            listener.publish(method, params)


class SubscriptionFilter:
    """Notifications that a `subscriptions/listen` request selects and the server supports."""

    def __init__(self, params: Json, capabilities: Json) -> None:
        wanted = params.get("notifications")
        if not isinstance(wanted, dict):
            raise McpError(INVALID_PARAMS, "Invalid params: notifications must be an object")
        self.honoured: Json = {}
        self._methods: set[str] = set()
        for member, (method, capability) in KINDS.items():
            value = wanted.get(member)
            if value not in (None, True, False):
                raise McpError(INVALID_PARAMS, f"Invalid params: {member} must be a boolean")
            if value and capabilities.get(capability, {}).get("listChanged"):
                self.honoured[member] = True
                self._methods.add(method)
        self.task_ids = wanted.get("taskIds")  # the tasks extension checks these IDs
        uris = wanted.get("resourceSubscriptions")
        if uris is not None and not (isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)):
            raise McpError(INVALID_PARAMS, "Invalid params: resourceSubscriptions must be a list of strings")
        self._uris: frozenset[str] = frozenset()
        if uris and capabilities.get("resources", {}).get("subscribe"):
            self._uris = frozenset(map(normalize_uri, uris))
            self.honoured["resourceSubscriptions"] = uris

    def wants(self, method: str, params: Json) -> bool:
        """Return True if a notification passes the filter."""
        return params.get("uri") in self._uris if method == UPDATED else method in self._methods
