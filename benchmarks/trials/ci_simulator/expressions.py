"""Expressions of GitHub Actions: `${{ needs.plan.outputs.jobs != '0' && !cancelled() }}`, as far as our workflows use them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|[A-Za-z_][\w.-]*|&&|\|\||==|!=|!|[(),])")
_SIGNS = {"&&": " and ", "||": " or ", "!": " not "}
_HOLE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


def evaluate(expression: str, context: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The value of an expression. A name that the context lacks is empty; a function that is not known is an error."""
    source, at = [], 0
    text = expression.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"not understood: {text[at:]!r} in {expression!r}")
        at = token.end()
        source.append(_translated(token[1], called=text[at:].lstrip().startswith("(")))
    known = {"fromJSON": json.loads, "startsWith": str.startswith, **functions}
    return eval("".join(source), {"__builtins__": {}, "look": lambda path: _look(context, path), **known})


def filled(value: Any, context: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    """A value of a workflow with its `${{ … }}` in place; one that is nothing else keeps its type."""
    if not isinstance(value, str):
        return value
    whole = _HOLE.fullmatch(value.strip())
    if whole:
        return evaluate(whole[1], context, functions)
    return _HOLE.sub(lambda hole: str(evaluate(hole[1], context, functions)), value)


def _translated(token: str, *, called: bool) -> str:
    if token.startswith("'"):
        return repr(token[1:-1].replace("''", "'"))
    if token in _SIGNS:
        return _SIGNS[token]
    if re.match(r"[A-Za-z_]", token) and not called:
        return f"look({token!r})"
    return token


def _look(context: Mapping[str, Any], path: str) -> Any:
    value: Any = context
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, Mapping) else ""
    return value
