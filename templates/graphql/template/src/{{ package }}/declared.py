"""Tools from the query files of the folder `queries`; their variables become arguments."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Final

from mcpfactory_runtime import Context
from pydantic import Field

from .api import Answer
from .language import LanguageError, Variable, read_operations

__all__ = ["Declared", "as_function", "read_folder"]

_TYPES: Final = {"Int": int, "Float": float, "Boolean": bool, "String": str, "ID": str}
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Declared:
    """A query file: name and description of its tool, its text and its variables."""

    name: str
    about: str
    text: str
    variables: tuple[Variable, ...]


def read_folder(folder: Path) -> list[Declared]:
    """Return the queries of the files `*.graphql` of a folder, by name.

    Raises:
        ValueError: a file is not a single named query with a comment above it.
    """
    return [_read(file) for file in sorted(folder.glob("*.graphql"))]


def as_function(one: Declared, ask: Callable[[Context, str, dict[str, Any]], Awaitable[Answer]]) -> Callable[..., Any]:
    """Return a function with the variables as its arguments, for `server.tool`."""

    async def call(ctx: Context, **variables: Any) -> Answer:
        return await ask(ctx, one.text, {name: value for name, value in variables.items() if value is not None})

    required = [_parameter(variable) for variable in one.variables if variable.required]
    optional = [_parameter(variable) for variable in one.variables if not variable.required]
    parameters = [*required, Parameter("ctx", Parameter.KEYWORD_ONLY, annotation=Context), *optional]
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # read by `inspect.signature`
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": Answer}
    call.__name__, call.__doc__ = one.name, one.about
    return call


def _read(file: Path) -> Declared:
    text = file.read_text("utf-8")
    try:
        operations = read_operations(text)
    except LanguageError as error:
        raise ValueError(f"{file.name}: {error}") from None
    about = " ".join(line.lstrip("# ").strip() for line in text.splitlines()[:1] if line.startswith("#"))
    if len(operations) != 1 or operations[0].kind != "query" or not operations[0].name or not about:
        wish = "write one named query, below a one-line comment that describes it"
        raise ValueError(f"{file.name} is not a valid tool\nhint: {wish}")
    if any(variable.name == "ctx" for variable in operations[0].variables):
        raise ValueError(f"{file.name}: a variable cannot be called ctx\nhint: rename it")
    return Declared(_HUMP.sub("_", operations[0].name).lower(), about, text, operations[0].variables)


def _parameter(variable: Variable) -> Parameter:
    kind = _type(variable.type)
    about = f"GraphQL type {variable.type}"
    if variable.required:
        return Parameter(variable.name, Parameter.KEYWORD_ONLY, default=Field(description=about), annotation=kind)
    optional = Field(default=None, description=about)
    return Parameter(variable.name, Parameter.KEYWORD_ONLY, default=optional, annotation=kind | None)


def _type(written: str) -> Any:
    """Return the Python type for a GraphQL type; `Any` for enumerations, inputs and custom scalars, which the API validates."""
    plain = written.removesuffix("!")
    if plain.startswith("["):
        return list[_type(plain[1:-1])]  # type: ignore[misc] # made at run time
    return _TYPES.get(plain, Any)
