"""HTTP client that adds Twilio's error codes and advice to errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from mcpfactory_runtime import ToolError, ToolResult
from mcpfactory_runtime.upstream import Operation, Upstream
from mcpfactory_runtime.upstream.client import Upstream as _Client
from mcpfactory_runtime.upstream.redaction import Redaction

from ._generated.api import BASE_URL, SCHEMES, SERVERS
from .errors import describe

__all__ = ["connection"]


class _Twilio(_Client):
    """Connection that describes Twilio's errors; it replaces the generated one."""

    def _result(
        self,
        answer: tuple[int, dict[str, str], bytes, bool],
        operation: Operation,
        arguments: Mapping[str, Any],
        *,
        secrets: tuple[str, ...],
        url: str,
        redirect: Any,
    ) -> ToolResult:
        try:
            return super()._result(answer, operation, arguments, secrets=secrets, url=url, redirect=redirect)
        except ToolError as error:
            more = describe(_read(answer[2]), operation.path) if answer[0] >= 400 else ""
            raise ToolError("\n".join(filter(None, [str(error), Redaction(secrets).text(more)]))) from None


def _read(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@cache
def connection() -> Upstream:
    """Return the connection that all tools share, configured by the environment."""
    return _Twilio(BASE_URL, SCHEMES, servers=SERVERS, prefix="TWILIO")
