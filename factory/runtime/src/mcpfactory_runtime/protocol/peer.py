"""The peer: negotiated once (handshake) or read from every request (per-request lifecycle)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, UNSUPPORTED_VERSION, McpError
from mcpfactory_runtime.revisions import MODERN, SUPPORTED, Revision
from mcpfactory_runtime.types import Json

# Keys of `params._meta` and `result._meta` in the per-request lifecycle (basic/index, General fields)
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"

LOG_LEVELS: Final[dict[str, int]] = {
    "debug": 0,
    "info": 1,
    "notice": 2,
    "warning": 3,
    "error": 4,
    "critical": 5,
    "alert": 6,
    "emergency": 7,
}
"""Syslog's levels (RFC 5424), least severe first."""


class Peer:
    """Known facts about the peer.

    Attributes:
        revision: the record of the negotiated revision.
        info: its `Implementation` object, {} if not sent.
        capabilities: its declared capabilities.
        log_level: index of the lowest level of log messages it wants; None: it wants none (modern) or sent none
            (legacy).
    """

    __slots__ = ("capabilities", "info", "log_level", "revision")

    def __init__(self, revision: Revision, info: Json, capabilities: Json, log_level: int | None = None) -> None:
        self.revision = revision
        self.info = info
        self.capabilities = capabilities
        self.log_level = log_level

    def declares(self, *path: str) -> bool:
        """Return True if a capability was declared, by its path: `declares("elicitation", "url")`."""
        value: Any = self.capabilities
        for name in path:
            if not isinstance(value, dict) or name not in value or value[name] is None:
                return False
            value = value[name]
        return True

    def missing(self, *path: str) -> Json | None:
        """Return the capabilities object that the peer would have to declare; None when it declares this."""
        if self.declares(*path):
            return None
        needed: Json = {}
        for name in reversed(path):
            needed = {name: needed}
        return needed

    def __repr__(self) -> str:
        return f"Peer({self.revision.name}, {self.info.get('name')!r})"


class Envelope(NamedTuple):
    """The checked metadata of a request of the per-request lifecycle; its version may still be unsupported."""

    version: str
    info: Json
    capabilities: Json
    log_level: int | None

    def peer(self) -> Peer:
        """Return the peer of this one request.

        Raises:
            McpError: UNSUPPORTED_VERSION with what would be supported (basic/versioning).
        """
        revision = MODERN.get(self.version)
        if revision is None:
            raise McpError(
                UNSUPPORTED_VERSION,
                f"Unsupported protocol version {self.version!r}",
                {"supported": SUPPORTED, "requested": self.version},
            )
        return Peer(revision, self.info, self.capabilities, self.log_level)


def read_envelope(params: Json) -> Envelope:
    """Return the metadata of a modern request (basic/index, `_meta`; schema RequestMetaObject).

    Raises:
        McpError: INVALID_PARAMS when a required key is missing or a key has the wrong type.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise McpError(INVALID_PARAMS, "Invalid params: _meta is missing")
    version = meta.get(META_VERSION)
    if type(version) is not str:
        raise McpError(INVALID_PARAMS, f"Invalid params: _meta must have {META_VERSION}, a string")
    capabilities = meta.get(META_CAPABILITIES)
    if type(capabilities) is not dict:
        raise McpError(INVALID_PARAMS, f"Invalid params: _meta must have {META_CAPABILITIES}, an object")
    info = meta.get(META_CLIENT)
    if info is None:
        info = {}
    elif type(info) is not dict:
        raise McpError(INVALID_PARAMS, f"Invalid params: {META_CLIENT} must be an object")
    wanted = meta.get(META_LOG_LEVEL)
    level = None
    if wanted is not None:
        level = LOG_LEVELS.get(wanted) if type(wanted) is str else None
        if level is None:
            raise McpError(INVALID_PARAMS, f"Invalid params: {META_LOG_LEVEL} must be one of {', '.join(LOG_LEVELS)}")
    return Envelope(version, info, capabilities, level)
