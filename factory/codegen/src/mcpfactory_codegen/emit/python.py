"""Text to Python, safely: literals, calls and docstrings. The only place where a document's text becomes source code."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any, Final

from mcpfactory_codegen.read.scalars import WrittenFloat, WrittenInt
from mcpfactory_codegen.text.prose import clean

__all__ = ["call", "docstring", "literal", "sequence"]

_WIDTH: Final = 110


def literal(value: Any) -> str:
    """Return a literal of str, int, float, bool, None or tuples, lists and dicts of them; what is not printable is escaped.

    Raises:
        TypeError: for any other type, so that no object can bring its own `repr` along.
    """
    if isinstance(value, tuple):
        return sequence(map(literal, value))
    if type(value) is list:
        return f"[{', '.join(map(literal, value))}]"
    if type(value) is dict:
        return f"{{{', '.join(f'{literal(key)}: {literal(member)}' for key, member in value.items())}}}"
    if isinstance(value, (WrittenInt, WrittenFloat)):  # numbers that remember how they were written
        return int.__repr__(value) if isinstance(value, int) else float.__repr__(value)
    if value is None or type(value) in (str, int, float, bool):
        return repr(value)
    raise TypeError(f"{type(value).__name__} is not written as a literal")


def call(name: str, /, *arguments: str, **keywords: str) -> str:
    """`name(a, b, k=v)` from expressions that are source code already."""
    return f"{name}({', '.join([*arguments, *(f'{key}={value}' for key, value in keywords.items())])})"


def sequence(items: Iterable[str]) -> str:
    """Return a tuple of expressions that are source code already; no trailing comma where none is needed."""
    items = list(items)
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def docstring(paragraphs: Iterable[str], indent: str = "") -> str:
    """Return a docstring: the first paragraph on the first line, each wrapped, nothing able to end or escape the string."""
    wrapped = ["\n".join(_wrapped(paragraph, indent)) for paragraph in paragraphs if paragraph.strip()]
    text = "\n\n".join(wrapped).replace("\\", "\\\\").replace('"""', '\\"\\"\\"').removeprefix(indent)
    if text.endswith('"'):
        text = text[:-1] + '\\"'
    return f'{indent}"""{text}\n{indent}"""' if "\n" in text else f'{indent}"""{text}"""'


def _wrapped(paragraph: str, indent: str) -> list[str]:
    """Lines of at most `_WIDTH`; a line that is indented keeps its indent, and more for what is wrapped."""
    lines = []
    for line in clean(paragraph).split("\n"):
        hanging = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line.strip(),
            width=_WIDTH,
            initial_indent=indent + hanging,
            subsequent_indent=indent + hanging + ("    " if hanging else ""),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines
