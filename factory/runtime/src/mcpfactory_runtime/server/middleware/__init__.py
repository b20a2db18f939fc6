"""Middleware around every client request and every tool call, with ready-made middleware for common needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.server.middleware.layers import Middleware, NextRequest, NextTool, Request, ToolRequest

if TYPE_CHECKING:
    from mcpfactory_runtime.server.middleware.builtin import Caching as Caching
    from mcpfactory_runtime.server.middleware.builtin import ErrorShaping as ErrorShaping
    from mcpfactory_runtime.server.middleware.builtin import Logging as Logging
    from mcpfactory_runtime.server.middleware.builtin import RateLimit as RateLimit
    from mcpfactory_runtime.server.middleware.builtin import ResponseLimit as ResponseLimit
    from mcpfactory_runtime.server.middleware.builtin import Retry as Retry

_READY: Final = ("Caching", "ErrorShaping", "Logging", "RateLimit", "ResponseLimit", "Retry")

__all__ = ["Middleware", "NextRequest", "NextTool", "Request", "ToolRequest", *_READY]  # noqa: PLE0604 - the table above


def __getattr__(name: str) -> Any:
    """Load ready-made middleware at the first use (PEP 562), so that servers without such middleware start faster."""
    if name not in _READY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only for the first use of a name

    return getattr(import_module(f"{__name__}.builtin"), name)
