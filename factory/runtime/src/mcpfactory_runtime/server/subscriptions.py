"""Subscribers to change notifications: handshake sessions and `subscriptions/listen` streams."""

from __future__ import annotations

from typing import Final, Protocol

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError
from mcpfactory_runtime.types import Json

UPDATED: Final = "notifications/resources/updated"

# member of the filter → (notification, capability that must be advertised)  (basic/patterns/subscriptions)
KINDS: Final[dict[str, tuple[str, str]]] = {
    "toolsListChanged": ("notifications/tools/list_changed", "tools"),
    "promptsListChanged": ("notifications/prompts/list_changed", "prompts"),
    "resourcesListChanged": ("notifications/resources/list_changed", "resources"),
}


class Listener(Protocol):
    """Somebody who may want change notifications."""

    def publish(self, method: str, params: Json) -> None:
        """Send the notification on, if it is wanted here."""


class Hub:
    """Passes change notifications to all listeners. Event loop only."""

    def __init__(self) -> None:
        self._listeners: dict[Listener, None] = {}

    def add(self, listener: Listener) -> None:
        """Start notifying `listener`."""
        self._listeners[listener] = None

    def discard(self, listener: Listener) -> None:
        """Stop notifying `listener`."""
        self._listeners.pop(listener, None)

    def publish(self, method: str, params: Json) -> None:
        """Notify every listener."""
        for listener in tuple(self._listeners):
            listener.publish(method, params)


class Filter:
    """Notifications that a `subscriptions/listen` request wants and is granted.

    Raises:
        McpError: INVALID_PARAMS if the filter is malformed.
    """

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
        self.task_ids = wanted.get("taskIds")  # checked by the tasks extension
        uris = wanted.get("resourceSubscriptions")
        if uris is not None and not (isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)):
            raise McpError(INVALID_PARAMS, "Invalid params: resourceSubscriptions must be a list of strings")
        self._uris = frozenset(uris or ()) if capabilities.get("resources", {}).get("subscribe") else frozenset()
        if self._uris:
            self.honoured["resourceSubscriptions"] = [uri for uri in uris or () if uri in self._uris]

    def wants(self, method: str, params: Json) -> bool:
        """Return True if a notification passes the filter."""
        return params.get("uri") in self._uris if method == UPDATED else method in self._methods
