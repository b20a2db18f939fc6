"""Commands made from operations: each field becomes an option, and each result is printed as text."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_origin

import typer

from mcpfactory import completion, output
from mcpfactory.options import DryRun, selected_workspace
from mcpfactory_pipeline.base.errors import WorkspaceError
from mcpfactory_pipeline.operations.operation import (
    FullAccess,
    Operation,
    OperationContext,
    OperationError,
    OperationResult,
    is_list_field,
    option_names,
)
from mcpfactory_pipeline.workspace.workspace import Workspace

Show = Callable[[Any], None]


def print_result(done: OperationResult) -> None:
    """Print the result on stdout, and notes and errors on stderr."""
    for line in done.lines():
        output.line(line)
    for line in done.notes():
        output.note(line)
    for message, hint in done.errors():
        output.error(message, hint)
    if done.next:
        output.note(f"next: {done.next}")


def make_typer_command(
    operation: type[Operation], show: Show = print_result, perform: Callable[..., None] | None = None
) -> Callable[..., None]:
    """Make a typer command from an operation.

    `show` prints the result as text. `perform` replaces both the operation and `show`.
    """

    def command(*, dry_run: bool, as_json: bool, **values: Any) -> None:
        given = operation.read(_given(operation, values))
        ask = partial(_ask, show, as_json=as_json)
        context = OperationContext(_workspace(), dry_run=dry_run, access=FullAccess(), ask=ask)
        (perform or partial(run_operation, show))(given, context, as_json=as_json)

    command.__doc__ = operation.help()
    command.__signature__ = inspect.Signature([*_parameters(operation)])  # type: ignore[attr-defined] # functions accept this attribute
    return command


def _workspace() -> Workspace | None:
    try:
        return selected_workspace()
    except WorkspaceError:  # no error yet, because an operation that needs a workspace raises this error again
        return None


def run_operation(show: Show, operation: Operation, context: OperationContext, *, as_json: bool) -> None:
    """Run an operation, show its progress, print its result, and exit with its exit code."""
    with output.progress(quiet=as_json) as tell:
        done = operation.run(replace(context, notify=tell))
    if as_json:
        output.data(done.model_dump(mode="json", exclude_none=True))
    else:
        show(done)
    if done.exit_code:
        raise typer.Exit(done.exit_code)


def _ask(show: Show, question: str, tried: OperationResult | None, *, as_json: bool) -> bool | None:
    """Ask the user a question after a dry run, or return None without a terminal."""
    if tried is not None and not as_json:
        with redirect_stdout(sys.stderr):
            show(tried)
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return typer.confirm(question, default=tried is None, err=True)


def _given(operation: type[Operation], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the user gave.

    Raise an OperationError for an empty value, or for different values of one field.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        field = name.removesuffix(_OPTION)
        if value is None:
            continue
        if value == "":  # an unset variable in a script must not select the default
            about = operation.model_fields[field].description
            raise OperationError(f"{field} is empty", hint=f"leave out {field}, or give a value: {about}")
        if found.setdefault(field, value) != value:
            raise OperationError(f"{field} was given twice: {found[field]} and {value}", hint="give only one value")
    return found


def _parameters(operation: type[Operation]) -> Iterator[inspect.Parameter]:
    for name, info, param in operation.fields("cli"):
        required, several = info.is_required(), is_list_field(info)
        kind: Any = list[str] | None if several else str if info.annotation in _AS_TEXT else info.annotation
        kind = str if get_origin(info.annotation) is Literal else kind
        # None means that the user gave no value
        kind = str | None if kind is str and info.default == "" else kind
        texts: dict[str, Any] = {"help": info.description, "metavar": param.metavar or _metavar(name, kind)}
        texts |= {
            "autocompletion": getattr(completion, param.names or "", None),
            **({"show_default": False} if required else {}),
        }
        flags = option_names(name, info, param)
        default = inspect.Parameter.empty if required else None if several or info.default == "" else info.default
        if param.argument:
            yield _parameter(name, Annotated[kind, typer.Argument(**texts)], default)
        if param.flags or not param.argument:
            option = f"{name}{_OPTION}" if param.argument else name
            yield _parameter(option, Annotated[kind, typer.Option(*flags, **texts)], default)
    yield _parameter("dry_run", DryRun, False)
    yield _parameter("as_json", Annotated[bool, typer.Option("--json", help=operation.json_help)], False)


def _metavar(name: str, kind: Any) -> str | None:
    """Return the placeholder of an option's value, such as TAG for `include_tags`."""
    return None if kind in {bool, int} else name.removesuffix("s").rpartition("_")[2].upper()


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_OPTION: Final = "_option"  # suffix of an option's name if an argument sets the same field
_AS_TEXT: Final = (date, Path | None)  # types that typer passes as text, so that pydantic parses them
