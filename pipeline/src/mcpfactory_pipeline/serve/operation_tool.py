"""Tools derived from operations: a parameter for each field that agents may set."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Annotated, Any

from pydantic import Field

from mcpfactory_pipeline.operations.operation import Access, Operation, Param
from mcpfactory_pipeline.serve.access import WorkspaceAccess, as_tool_error
from mcpfactory_runtime import Context


class AgentAccess(Access):
    """Files and addresses that an agent may name: those of the workspace, and public ones."""

    permits_private = False

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def document(self, place: str) -> str:
        """Return the place of a document of the workspace, or at a permitted address."""
        return self._access.document(place)

    def template(self, name: str) -> str:
        """Return the name of a shipped template, or the path of a folder in the workspace."""
        return self._access.template(name)

    def reading(self) -> AbstractContextManager[None]:
        """Return a context in which only permitted addresses are fetched."""
        return self._access.reading()


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
