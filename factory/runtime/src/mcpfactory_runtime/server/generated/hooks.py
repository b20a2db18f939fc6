"""What the person who owns a generated server adds to its tools: functions before and after a call.

    @server.before("list_books")
    def few_at_a_time(call: ToolCall) -> None:
        call.arguments.setdefault("limit", 20)

A hook before a call may change the arguments (they have been checked already), or raise `ToolError` to refuse; one after it
may answer with another result. Hooks run in the order in which they were written, also for calls by way of search mode, as
a task, or by `Context.call`. They hold for generated tools: tools of one's own need none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from mcpfactory_runtime.server.context import Context
    from mcpfactory_runtime.server.registry import Tool
    from mcpfactory_runtime.server.results import ToolResult

__all__ = ["Hooks", "ToolCall"]

Before = Callable[["ToolCall"], Awaitable[None] | None]
After = Callable[["ToolCall", "ToolResult"], "Awaitable[ToolResult | None] | ToolResult | None"]
Hook = TypeVar("Hook", bound=Callable[..., Any])

_CONTEXT: Final = " context"  # no argument of a tool has a space


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a generated tool. `arguments` may be changed in place."""

    name: str
    arguments: dict[str, Any]
    context: Context


class Hooks:
    """The hooks of a server, by the name of the tool; "" for all generated tools."""

    def __init__(self) -> None:
        self._before: list[tuple[frozenset[str], Before]] = []
        self._after: list[tuple[frozenset[str], After]] = []

    def add_before(self, names: tuple[str, ...], hook: Hook, known: Container[str]) -> Hook:
        """Register a hook.

        Raises:
            ValueError: a name is that of no generated tool.
        """
        self._before.append((_checked(names, known), hook))
        return hook

    def add_after(self, names: tuple[str, ...], hook: Hook, known: Container[str]) -> Hook:
        """Register a hook.

        Raises:
            ValueError: a name is that of no generated tool.
        """
        self._after.append((_checked(names, known), hook))
        return hook

    def wrap(self, tool: Tool) -> None:
        """Put the hooks of a tool that was just loaded around its handler."""
        before = [hook for names, hook in self._before if not names or tool.name in names]
        after = [hook for names, hook in self._after if not names or tool.name in names]
        inner = tool.handler
        if inner is None or not (before or after):
            return

        async def handler(**arguments: Any) -> Any:
            call = ToolCall(tool.name, arguments, arguments.pop(_CONTEXT))
            for early in before:
                if isawaitable(waiting := early(call)):
                    await waiting
            result: Any = await inner(**call.arguments)
            for late in after:
                other = late(call, result)
                result = (await other if isawaitable(other) else other) or result
            return result

        tool.handler, tool.context, tool.is_async = handler, _CONTEXT, True


def _checked(names: tuple[str, ...], known: Container[str]) -> frozenset[str]:
    for name in names:
        if name not in known:
            raise ValueError(
                f"there is no generated tool {name!r}\nhint: `mcpfactory inspect` lists them; hooks come after mount_manifest"
            )
    return frozenset(names)
