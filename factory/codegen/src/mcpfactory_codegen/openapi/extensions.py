"""What an API document itself says about which operations are for models: its `x-mcp…` extensions, of all makers.

An extension may stand at the document's top, at a path, and at an operation; the innermost one decides. What is no mark (an
`x-mcp` that describes a server, say) says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["EXTENSIONS", "PREFIXES", "marked"]

PREFIXES: Final = ("x-mcp", "x-speakeasy-mcp")
"""How the names of extensions begin that readers keep for us."""

Mark = bool | None

_YES: Final = ("enabled", "include", "expose", "exposed")
_NO: Final = ("disabled", "skip", "ignore", "exclude", "hidden", "hide")


def _plain(value: Any) -> Mark:
    return value if isinstance(value, bool) else None


def _reverse(value: Any) -> Mark:
    return not value if isinstance(value, bool) else None


def _either(value: Any) -> Mark:
    """Return a boolean, or an object that has one of the usual members."""
    if not isinstance(value, Mapping):
        return _plain(value)
    for names, read in ((_NO, _reverse), (_YES, _plain)):
        for name in names:
            if (mark := read(value.get(name))) is not None:
                return mark
    return None


EXTENSIONS: Final[dict[str, Callable[[Any], Mark]]] = {
    "x-mcp": _either,
    "x-mcp-tool": _either,
    "x-mcp-enabled": _plain,
    "x-mcp-include": _plain,
    "x-mcp-expose": _plain,
    "x-mcp-disabled": _reverse,
    "x-mcp-exclude": _reverse,
    "x-mcp-ignore": _reverse,
    "x-mcp-skip": _reverse,
    "x-mcp-hidden": _reverse,
    "x-speakeasy-mcp": _either,
}
"""Extension → how its value is read: True, for models; False, not for models; None, it says nothing."""


def marked(extensions: Mapping[str, Any]) -> Mark:
    """Return what the extensions of an operation say, outermost first: True, False, or None when they say nothing."""
    mark: Mark = None
    for name, value in extensions.items():
        read = EXTENSIONS.get(name.lower())
        if read is not None and (found := read(value)) is not None:
            mark = found
    return mark
