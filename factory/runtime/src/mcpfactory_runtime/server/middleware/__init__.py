"""Middleware around every client request and every tool call, with ready-made middleware for common needs.

`protocol` defines a middleware, `layers` composes the functions of a server; every other module is a ready-made
middleware.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.server.middleware.layers import Middleware, NextRequest, NextTool, Request, ToolRequest

if TYPE_CHECKING:
    from mcpfactory_runtime.server.middleware.caching import Caching as Caching
    from mcpfactory_runtime.server.middleware.limits import RateLimit as RateLimit
    from mcpfactory_runtime.server.middleware.limits import ResponseLimit as ResponseLimit
    from mcpfactory_runtime.server.middleware.limits import Retry as Retry
    from mcpfactory_runtime.server.middleware.logs import ErrorShaping as ErrorShaping
    from mcpfactory_runtime.server.middleware.logs import Logging as Logging

_READY: Final = {
    "Caching": "caching",
    "ErrorShaping": "logs",
    "Logging": "logs",
    "RateLimit": "limits",
    "ResponseLimit": "limits",
    "Retry": "limits",
}

__all__ = ["Middleware", "NextRequest", "NextTool", "Request", "ToolRequest", *_READY]  # noqa: PLE0604 - the table above


def __getattr__(name: str) -> Any:
    """Load a ready middleware at first use (PEP 562): servers without one do not pay for it."""
    module = _READY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only for the first use of a name

    return getattr(import_module(f"{__name__}.{module}"), name)
