"""Commands derived from operations: an option for each field, and the text for each result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_origin

import typer

from mcpfactory import complete, output
from mcpfactory.options import DryRun, workspace_in
from mcpfactory_pipeline.operations.operation import (
    FullAccess,
    Operation,
    OperationContext,
    OperationError,
    OperationResult,
    is_list,
    option_names,
)
from mcpfactory_runtime.errors import Exit


def command_of(operation: type[Operation], perform: Callable[..., None] | None = None) -> Callable[..., None]:
    """Return the command of an operation as a function for typer; `perform` replaces running it and printing its result."""

    def command(*, dry_run: bool, as_json: bool, **values: Any) -> None:
        given = operation.read({name: value for name, value in _merged(values).items() if value is not None})
        context = OperationContext(workspace_in(), dry_run=dry_run, access=FullAccess())
        (perform or _perform)(given, context, as_json=as_json)

    command.__doc__ = operation.help()
    command.__signature__ = inspect.Signature([*_parameters(operation)])  # type: ignore[attr-defined] # functions have it
    return command


def _perform(operation: Operation, context: OperationContext, *, as_json: bool) -> None:
    done = operation.run(context)
    if as_json:
        output.data(done.model_dump(mode="json", exclude_none=True))
    else:
        print_result(done)
    if failed := getattr(done, "failed", ()):
        for one in () if as_json else failed:
            output.error(one["error"], one["hint"])
        raise typer.Exit(Exit.NO)


def print_result(done: OperationResult) -> None:
    """Print the answer on stdout, notes and the next command on stderr."""
    for line in done.lines():
        output.line(line)
    for line in done.notes():
        output.note(line)
    if done.next:
        output.note(f"next: {done.next}")


def _merged(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of fields; an argument may also be given as an option, but not twice.

    Raises:
        OperationError: both were given, and differ.
    """
    found = {name: value for name, value in values.items() if not name.endswith(_OPTION)}
    for name, value in values.items():
        field = name.removesuffix(_OPTION)
        if name != field and value:
            if found[field] and found[field] != value:
                raise OperationError(f"{field} was given twice: {found[field]} and {value}", hint="give one of them")
            found[field] = value
    return found


def _parameters(operation: type[Operation]) -> Iterator[inspect.Parameter]:
    for name, info, param in operation.fields("cli"):
        required, several = info.is_required(), is_list(info)
        kind: Any = list[str] | None if several else str if info.annotation in _AS_TEXT else info.annotation
        kind = str if get_origin(info.annotation) is Literal else kind
        texts: dict[str, Any] = {"help": info.description, "metavar": param.metavar or _metavar(name, kind)}
        texts |= {"autocompletion": _NAMES.get(param.names), **({"show_default": False} if required else {})}
        flags = option_names(name, info, param)
        default = inspect.Parameter.empty if required else None if several else info.default
        if param.argument:
            yield _parameter(name, Annotated[kind, typer.Argument(**texts)], default)
        if param.flags or not param.argument:
            option = f"{name}{_OPTION}" if param.argument else name
            yield _parameter(option, Annotated[kind, typer.Option(*flags, **texts)], default)
    yield _parameter("dry_run", DryRun, False)
    yield _parameter("as_json", Annotated[bool, typer.Option("--json", help=operation.json_help)], False)


def _metavar(name: str, kind: Any) -> str | None:
    """Return the placeholder of a value: the last word of its name in the singular, such as TAG for include_tags."""
    return None if kind in {bool, int} else name.removesuffix("s").rpartition("_")[2].upper()


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_OPTION: Final = "_option"  # end of the name of an option for a field that is an argument
_AS_TEXT: Final = (date, Path | None)  # pydantic reads them
_NAMES: Final = {
    "templates": complete.templates,
    "servers": complete.servers,
    "channels": complete.channels,
    "stages": complete.stages,
    "tools": complete.tools,
}
