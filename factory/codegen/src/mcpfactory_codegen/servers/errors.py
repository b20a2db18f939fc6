"""The error that makers of servers raise, and the table that turns the errors of the parts into it."""

from __future__ import annotations

from typing import Final

from mcpfactory_codegen.read.document import DocumentError
from mcpfactory_codegen.servers.merge import LockError, MergeError
from mcpfactory_codegen.servers.scaffold import ScaffoldError
from mcpfactory_codegen.servers.templates import UnknownTemplateError
from mcpfactory_codegen.servers.tree import FormatError, TreeError
from mcpfactory_codegen.servers.values import ServerConfigError
from mcpfactory_runtime.errors import Exit, McpfactoryError


class CreateError(McpfactoryError):
    """Error for a server that was not created. `args[0]` has the reason and the place, `hint` the remedy.

    Codes: `empty`, `exists`, `name`, `source`, `document`, `strict`, `template`, `config`, `damaged`, `write`,
    `edited`, `merge`, `internal`.
    """

    exit_code = Exit.BAD_INPUT

    def __init__(self, message: str, hint: str, code: str) -> None:
        super().__init__(message, hint)
        self.code = code


class NoSuchTemplateError(CreateError):
    """Error for a server that was not created because its template is unknown."""

    exit_code = Exit.NOT_FOUND


class as_create_errors:  # noqa: N801 - reads as a statement: with as_create_errors(): …
    """Turns the errors of the parts into `CreateError`, the one that callers handle."""

    _CODES: tuple[tuple[type[Exception], str], ...] = (
        (DocumentError, "document"),
        (ScaffoldError, "template"),
        (ServerConfigError, "config"),
        (LockError, "damaged"),
        (TreeError, "write"),
        (MergeError, "merge"),
        (FormatError, "internal"),
        (OSError, "write"),
    )

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for known, code in self._CODES:
            if isinstance(error, known):
                hint = getattr(error, "hint", "") or _HINTS.get(code, "")
                kind_made = NoSuchTemplateError if isinstance(error, UnknownTemplateError) else CreateError
                raise kind_made(str(error), hint, code) from error


_HINTS: Final = {
    "write": "check that the folder can be written and the disk has room",
    "internal": "this is a fault of mcpfactory; please report it with the document",
}
