"""HTTP client for the API behind a server.

Operations are plain data. Functions without side effects create requests and results. `Upstream` and `StubUpstream` are
imported at first use, because they load an HTTP library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.upstream.encoding import UNSET, Unset, piece
from mcpfactory_runtime.upstream.operation import (
    Body,
    Field,
    OAuthFlow,
    Operation,
    Paging,
    Parameter,
    SecurityScheme,
    ServerAddress,
    Xml,
)

if TYPE_CHECKING:
    from mcpfactory_runtime.upstream.client import Upstream
    from mcpfactory_runtime.upstream.stub import StubUpstream

__all__ = [
    "UNSET",
    "Body",
    "Field",
    "OAuthFlow",
    "Operation",
    "Paging",
    "Parameter",
    "SecurityScheme",
    "ServerAddress",
    "StubUpstream",
    "Unset",
    "Upstream",
    "Xml",
    "piece",
]

_LAZY: Final = {"Upstream": ".client", "StubUpstream": ".stub"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name], __name__), name)
    globals()[name] = value
    return value
