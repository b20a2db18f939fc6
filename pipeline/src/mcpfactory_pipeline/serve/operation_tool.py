"""Tools derived from operations: a parameter for each field that agents may set."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any

from pydantic import Field

from mcpfactory_pipeline.operations.operation import Operation, Param
from mcpfactory_pipeline.serve.access import as_tool_error
from mcpfactory_runtime import Context


def tool_of(
    operation: type[Operation],
    perform: Callable[..., Awaitable[Any]],
    *,
    returns: type,
    about: str = "",
    dry_run: bool = False,
) -> Callable[..., Any]:
    """Return the tool of an operation as a function for `Server.tool`.

    Args:
        operation: its docstring is the description, its fields are the parameters.
        perform: carries out an operation for a caller, given the context and the operation.
        returns: the type of the result.
        about: more for the description.
        dry_run: whether the tool has a parameter `dry_run`, which `perform` receives.
    """

    async def tool(ctx: Context, **values: Any) -> Any:
        options = {"dry_run": values.pop("dry_run", False)} if dry_run else {}
        with as_tool_error():
            wanted = operation.read(values)
        return await perform(ctx, wanted, **options)

    tool.__name__ = operation.id()
    tool.__doc__ = f"{operation.help()}\n\n{about}".strip()
    parameters = [_parameter("ctx", Context), *_parameters(operation)]
    if dry_run:
        parameters.append(
            _parameter("dry_run", Annotated[bool, Field(description="Check everything; write nothing")], False)
        )
    tool.__signature__ = inspect.Signature(parameters, return_annotation=returns)  # type: ignore[attr-defined] # functions have it
    tool.__annotations__ = {**{one.name: one.annotation for one in parameters}, "return": returns}
    return tool


def _parameters(operation: type[Operation]) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field; an agent gives a reason for each decision."""
    for name, info, param in operation.fields("mcp"):
        bounds = [one for one in info.metadata if not isinstance(one, Param)]
        texts = Field(description=info.description, examples=info.examples, min_length=1 if name == "reason" else None)
        required = info.is_required() or name == "reason" or (param.names == "servers" and info.annotation is str)
        default = inspect.Parameter.empty if required else info.default
        yield _parameter(name, Annotated[info.annotation, *bounds, texts], default)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
