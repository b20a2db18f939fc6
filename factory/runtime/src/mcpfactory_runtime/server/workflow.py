"""Functions that generated workflows call to run steps and to read answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.encoding import UNSET

if TYPE_CHECKING:
    from mcpfactory_runtime.server.context import Context


class _Each:
    """The type of EACH."""


EACH: Final = _Each()
"""Step of a path that selects every item of a list, or every member of an object."""


async def step(ctx: Context, tool: str, /, **arguments: Any) -> Any:
    """Call a tool of this server and return the unwrapped answer. Omit arguments that are UNSET."""
    try:
        answer = await ctx.call(tool, **_given(arguments))
    except ToolError as error:
        raise ToolError(f"{tool}: {error}") from None
    if isinstance(answer, Mapping) and answer.keys() == {"result"} and not isinstance(answer["result"], Mapping):
        return answer["result"]  # unwrap the member `result`, because servers wrap values that are not objects
    return answer


def _given(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _given(one) for name, one in value.items() if one is not UNSET}
    return [_given(one) for one in value if one is not UNSET] if isinstance(value, list) else value


def pick(value: Any, *path: str | int | _Each) -> Any:
    """Return the value at a path of names, indexes and EACH. A path with EACH returns all matching values as a list.

    Raises:
        ToolError: no value was found, and the path has no EACH.
    """
    several = EACH in path
    found = [value]
    for at, key in enumerate(path):
        if key is EACH:
            found = [one for each in found for one in _inside(each)]
            continue
        reached = [one[key] for one in found if _has(one, key)]
        if not several and not reached:
            raise ToolError(f"The workflow stops here: the answer has no {_path_text(path[: at + 1])}.")
        found = reached
    return found if several else found[0]


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []


def _has(value: Any, key: Any) -> bool:
    if isinstance(value, Mapping):
        return isinstance(key, str) and key in value
    return isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value)


def _path_text(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")
