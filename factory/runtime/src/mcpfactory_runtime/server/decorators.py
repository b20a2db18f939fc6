"""Forms of a server's decorators: without parentheses, with names, or with keywords."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import asynccontextmanager
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any


def middleware_decorator(add: Callable[[Iterable[str], Any], None], given: tuple[Any, ...]) -> Any:
    """Register middleware from a decorator used without parentheses, or with names; return the decorator's result."""
    if len(given) == 1 and not isinstance(given[0], str):
        add((), given[0])
        return given[0]

    def register(function: Any) -> Any:
        add(given, function)
        return function

    return register


def decorated(register: Callable[[Any], Any], given: Any, options: dict[str, Any], what: str) -> Any:
    """Return the result of a decorator used without parentheses, with a name, or with keywords.

    Raises:
        TypeError: for another first argument, and for two names.
    """
    if callable(given):
        return register(given)
    if isinstance(given, str):
        if options.setdefault("name", given) != given:
            raise TypeError(f"two names for one {what}: {given!r} and {options['name']!r}")
    elif given is not None:
        raise TypeError(f'{given!r} is no function and no name\nhint: @server.{what}, or @server.{what}("name")')
    return register


def lifespan_manager(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a lifespan as a function that makes a context manager.

    Raises:
        TypeError: it makes none.
    """
    if isasyncgenfunction(function):
        return asynccontextmanager(function)
    wrong = iscoroutinefunction(function) or isgeneratorfunction(function)
    if wrong or not callable(function):
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"the lifespan {name} is no async generator\nhint: async def {name}(server): … yield state …")
    return function
