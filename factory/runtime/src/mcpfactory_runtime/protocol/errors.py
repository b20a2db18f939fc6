"""Errors of the protocol, from JSON-RPC 2.0 §5.1 and MCP."""

from __future__ import annotations

from typing import Any, Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002  # only in revisions with a handshake; later revisions use INVALID_PARAMS
URL_ELICITATION_REQUIRED: Final = -32042  # only one revision has this code
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
RATE_LIMITED: Final = 429  # our own code, outside the protocol's range; equal to the HTTP status

# Code → (name, HTTP status). In the per-request lifecycle, a response that has not begun gets this status.
# The specification defines the status of HEADER_MISMATCH, MISSING_CAPABILITY and UNSUPPORTED_VERSION.
# The other statuses are those of the official servers.
CODES: Final[dict[int, tuple[str, int]]] = {
    PARSE_ERROR: ("parse error", 400),
    INVALID_REQUEST: ("invalid request", 400),
    METHOD_NOT_FOUND: ("method not found", 404),
    INVALID_PARAMS: ("invalid params", 400),
    INTERNAL_ERROR: ("internal error", 200),
    RESOURCE_NOT_FOUND: ("resource not found", 200),
    URL_ELICITATION_REQUIRED: ("URL elicitation required", 200),
    HEADER_MISMATCH: ("header mismatch", 400),
    MISSING_CAPABILITY: ("missing required client capability", 400),
    UNSUPPORTED_VERSION: ("unsupported protocol version", 400),
    RATE_LIMITED: ("too many requests", 200),  # not 429, because clients expect only 200 or 400
}


class McpError(Exception):
    """A JSON-RPC error, which a handler raises for the peer, or which the peer sent.

    Args:
        code: error code. A custom code must be outside -32768…-32000.
        message: one sentence, for the peer's log.
        data: any JSON value, sent as `error.data`. None is not sent.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __repr__(self) -> str:
        return f"McpError({self.code}, {self.message!r}, {self.data!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return the `error` member of a JSON-RPC response."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


def http_status(code: int) -> int:
    """Return the HTTP status for an error code, or 200 for a custom code."""
    entry = CODES.get(code)
    return entry[1] if entry else 200
