"""Table of all operations. A new operation needs a class and an entry in this table."""

from __future__ import annotations

import shlex
from typing import Any, Final

from mcpfactory_pipeline.operations.decisions import DECISIONS, Retire, Revive, Waive
from mcpfactory_pipeline.operations.install import Install, Uninstall
from mcpfactory_pipeline.operations.new import Adopt, New, Update
from mcpfactory_pipeline.operations.operation import Operation, OperationError, is_list_field, option_names
from mcpfactory_pipeline.operations.publish import Publish
from mcpfactory_pipeline.operations.refresh import Refresh
from mcpfactory_pipeline.operations.removal import Remove, Rename
from mcpfactory_pipeline.operations.run import Run

OPERATIONS: Final[tuple[type[Operation], ...]] = (
    New, Adopt, Update, Run, Refresh, *DECISIONS, Retire, Revive, Waive, Publish, Install, Uninstall, Rename, Remove,
)  # fmt: skip


def parse_operation_command(command: str) -> Operation | None:
    """Return the operation of a command line; None if it is not a complete command of an operation."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    for operation in OPERATIONS:
        start = ["mcpfactory", *operation.command.split()]
        if words[: len(start)] == start:
            try:
                return operation.read(_values(operation, words[len(start) :]))
            except OperationError:
                return None
    return None


def _values(operation: type[Operation], words: list[str]) -> dict[str, Any]:
    fields = [*operation.fields("cli")]
    options = {
        flag: (name, info)
        for name, info, param in fields
        if param.flags or not param.argument
        for flag in option_names(name, info, param)
    }
    arguments = [name for name, _, param in fields if param.argument]
    found: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, info = options.get(word, ("", None))
        if info is None and not word.startswith("-") and arguments:
            several = is_list_field(operation.model_fields[arguments[0]])
            found[arguments[0]] = (*found.get(arguments[0], ()), word) if several else word
            arguments = arguments if several else arguments[1:]
        elif info is None or (info.annotation is not bool and not rest):
            raise OperationError(f"unknown option {word}", hint=f"mcpfactory {operation.command} --help")
        elif info.annotation is bool:
            found[name] = True
        else:
            found[name] = (*found.get(name, ()), rest.pop(0)) if is_list_field(info) else rest.pop(0)
    return found
