"""Base classes of operations, which users perform on a workspace.

An operation is a pydantic model that is declared only once. The model's docstring is the help text, and its fields are
the parameters. The method `run` executes the operation. The model defines the command (`mcpfactory.operations`), the
dashboard's form and JSON endpoint (`dashboard.actions`), the agents' tool (`serve.operation_tools`) and the reference
page.
"""

from __future__ import annotations

import inspect
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, StringConstraints, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.events import Reporter
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.base.text import MAX_REASON_LENGTH
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.errors import Exit


class OperationError(ConfigError):
    """An operation has an invalid value."""

    exit_code = Exit.USAGE


class DeclinedError(ConfigError):
    """The person declined the operation."""

    exit_code = Exit.NEGATIVE


Surface = Literal["cli", "dashboard", "mcp"]
Omitted = Mapping[Surface, str]
"""Surfaces that do not offer an operation or a field, each with the reason."""
Names = Literal["", "servers", "channels", "stages", "templates", "tools", "targets", "clients"]


@dataclass(frozen=True, slots=True)
class FieldPresentation:
    """Presentation of a field, in addition to its type, default and description.

    Attributes:
        flags: options on the command line; by default `--` and the field's name, in the singular for a list.
        metavar: placeholder for the value in help texts.
        argument: True for a positional argument of the command.
        names: kind of names that shells complete, such as `servers`.
        omit: surfaces that do not offer the field, each with the reason.
    """

    flags: tuple[str, ...] = ()
    metavar: str = ""
    argument: bool = False
    names: Names = ""
    omit: Omitted = field(default_factory=dict)


def param(
    description: str,
    default: Any = PydanticUndefined,
    *,
    flags: tuple[str, ...] = (),
    metavar: str = "",
    argument: bool = False,
    names: Names = "",
    omit: Omitted | None = None,
    **constraints: Any,
) -> Any:
    """Return a field of an operation with a `FieldPresentation`. `constraints` are those of pydantic."""
    info = Field(default, description=description, **constraints)
    info.metadata.append(FieldPresentation(flags, metavar, argument, names, omit or {}))
    return info


class DocumentAccess(Protocol):
    """Documents and templates that a caller may name."""

    @property
    def permits_private(self) -> bool:
        """Return True if a caller who names a document at a private address also permits calls to this address."""

    def document(self, name: str) -> str:
        """Return the path or URL of a document, or raise `ConfigError`."""

    def template(self, name: str) -> str:
        """Return the source of a template, or raise `ConfigError`."""

    def reading(self) -> AbstractContextManager[None]:
        """Return a context manager to use during reads of documents."""


class FullAccess:
    """Access of a person at a terminal: all files, addresses and templates."""

    permits_private = True

    def document(self, name: str) -> str:
        """Return the unchanged name."""
        return name

    def template(self, name: str) -> str:
        """Return the unchanged name."""
        return name

    def reading(self) -> AbstractContextManager[None]:
        """Return a context manager that has no effect."""
        return nullcontext()


@dataclass(frozen=True, slots=True)
class OperationContext:
    """Workspace in which an operation runs, and its callbacks.

    Attributes:
        place: the workspace; None to find the workspace of the current folder.
        dry_run: check everything and write nothing.
        stages: replacement for the stages of the workspace.
        reporter: receives the events of a run.
        stop: setting this event ends a run cleanly.
        run_id: ID of the run, from `new_id`, for callers that follow the run.
        access: documents and templates that the caller may name; None for no access.
        notify: receives a line at the start of each step, and "" before a question.
        ask: shows the result of a dry run, asks a person, and returns the answer; None if nobody can be asked.
    """

    place: Workspace | None
    dry_run: bool = False
    clock: Clock = utc_now
    stages: Sequence[Stage] | None = None
    reporter: Reporter | None = None
    stop: threading.Event | None = None
    run_id: str = ""
    access: DocumentAccess | None = None
    notify: Callable[[str], None] = lambda _step: None
    ask: Callable[[str, OperationResult | None], bool | None] = lambda _question, _tried: None

    @property
    def workspace(self) -> Workspace:
        """Return the workspace."""
        return self.place or Workspace.find(Path.cwd())

    def confirm(self, question: str, tried: OperationResult, command: str) -> None:
        """Ask a person for confirmation, with the result of a dry run.

        `command` is the hint if nobody can be asked.

        Raises:
            OperationError: nobody can be asked.
            DeclinedError: the answer is no.
        """
        self.notify("")
        answer = self.ask(question, tried)
        if answer is None:
            raise OperationError("nothing was changed: confirmation is required", hint=command)
        if not answer:
            raise DeclinedError("nothing was changed")


class OperationResult(BaseModel):
    """Result of an operation, or of its dry run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    message: str = Field(description="What happened, in one sentence.")
    details: tuple[str, ...] = Field(default=(), description="Facts to know before confirmation, one line each.")
    next: str = Field(default="", description="Command to run next.")
    dry_run: bool = Field(default=False, description="Nothing was written.")
    _record: Any = PrivateAttr(default=None)

    @property
    def record(self) -> Any:
        """Return the object that the operation made, for commands that print more than this result."""
        return self._record

    def of(self, record: Any) -> Self:
        """Store an object as `record`, and return this result."""
        self._record = record
        return self

    @property
    def exit_code(self) -> Exit:
        """Return the exit code of the command."""
        return Exit.NEGATIVE if self.errors() else Exit.OK

    def errors(self) -> Sequence[tuple[str, str]]:
        """Return pairs of error message and hint."""
        return ()

    def lines(self) -> list[str]:
        """Return the text for stdout."""
        return [f"would be: {self.message}" if self.dry_run else self.message]

    def notes(self) -> tuple[str, ...]:
        """Return the text for stderr."""
        return self.details


class Operation(BaseModel):
    """An action that a user can perform on a workspace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: ClassVar[str]
    title: ClassVar[str]
    result: ClassVar[type[OperationResult]]
    destructive: ClassVar[bool] = False
    """True if the operation replaces a release or a decision (`destructiveHint` of its tool)."""
    idempotent: ClassVar[bool] = False
    """True if a repetition of the operation changes nothing (`idempotentHint` of its tool)."""
    json_help: ClassVar[str] = "Print one JSON document instead of text"
    """Help text of `--json`."""
    omit: ClassVar[Omitted] = {}
    """Surfaces that do not offer the operation, each with the reason."""

    def run(self, context: OperationContext) -> OperationResult:
        """Execute the operation.

        Raises:
            PipelineError: the operation failed or was refused; the hint names the next step.
        """
        raise NotImplementedError

    @classmethod
    def id(cls) -> str:
        """Return the last word of the command, which is the operation's name on the dashboard and for agents."""
        return cls.command.rpartition(" ")[2]

    @classmethod
    def help(cls) -> str:
        """Return the docstring without indentation."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def fields(cls, surface: Surface) -> Iterator[tuple[str, FieldInfo, FieldPresentation]]:
        """Yield name, info and presentation of the fields that a surface offers. Fields of mixins come last."""
        own = {name for base in cls.__mro__ if issubclass(base, Operation) for name in base.__annotations__}
        for name, info in sorted(cls.model_fields.items(), key=lambda item: item[0] not in own):
            param = field_presentation(info)
            if surface not in param.omit:
                yield name, info, param

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Return an operation with the given values.

        Raises:
            OperationError: a value is missing, unknown or invalid.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise _explain(cls, error) from None

    def command_line(self) -> str:
        """Return the command line of this operation."""
        words: list[str] = []
        options: list[str] = []
        for name, info, param in self.fields("cli"):
            value = getattr(self, name)
            # Omit empty defaults. Write other defaults, such as a channel.
            if value == info.default and not value:
                continue
            for one in value if isinstance(value, tuple) else (value,):
                if param.argument:
                    words.append(shlex.quote(str(one)))
                else:
                    flag = option_names(name, info, param)[0]
                    options += [flag] if one is True else [flag, shlex.quote(str(one))]
        return " ".join(["mcpfactory", self.command, *words, *options])


class ConfirmedOperation(Operation):
    """Operation that an agent executes only after a person confirmed the result of a dry run."""

    question: ClassVar[str]
    """Question to the person. Placeholders are fields of the operation and of the dry run's result."""

    def ask(self, tried: Any) -> str:
        """Return the question to ask about the result of a dry run."""
        return self.question.format(**{**dict(self), **dict(tried)})

    def bind(self, tried: Any) -> Self:
        """Return the operation, limited to the candidate and the facts of the dry run."""
        return self

    def subject(self, tried: Any) -> str:
        """Return the key of the question. An answer to a question with another key does not count."""
        return f"{self.id()}-{hash_bytes(tried.model_dump_json().encode())}"


def field_presentation(info: FieldInfo) -> FieldPresentation:
    """Return the presentation of a field, or of its type."""
    return next((one for one in reversed(info.metadata) if isinstance(one, FieldPresentation)), _PLAIN)


def option_names(name: str, info: FieldInfo, param: FieldPresentation) -> tuple[str, ...]:
    """Return the command line options of a field. The default option is derived from the field's name."""
    if any(flag.startswith("--") for flag in param.flags):
        return param.flags
    singular = name.removesuffix("s") if is_list_field(info) else name
    return (f"--{singular.replace('_', '-')}", *param.flags)


def is_list_field(info: FieldInfo) -> bool:
    """Return True if the field takes several values."""
    return getattr(info.annotation, "__origin__", None) is tuple


_PLAIN: Final = FieldPresentation()


def _explain(operation: type[Operation], error: ValidationError) -> OperationError:
    first = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    name = str(first["loc"][0]) if first["loc"] else ""
    known = list(operation.model_fields)
    if first["type"] == "extra_forbidden":
        return OperationError(f"{operation.id()} has no field {name!r}", hint=did_you_mean(name, known, "fields"))
    info = operation.model_fields[name]
    kind = first["type"].partition("_")[0] if first["type"].startswith("date") else first["type"]
    message, hint = _PROBLEMS.get(kind, ("{name}: {msg}", "{name}: {about}"))
    facts = {"name": name, "about": info.description, "msg": first["msg"], "given": first.get("input")}
    facts |= {"values": ", ".join(filter(None, get_args(info.annotation))), "size": len(str(facts["given"]))}
    facts |= first.get("ctx", {})
    return OperationError(message.format(**facts), hint=hint.format(**facts))


_PROBLEMS: Final[Mapping[str, tuple[str, str]]] = {
    "missing": ("{name} is missing", "{name}: {about}"),
    "literal_error": ("unknown {name} {given!r}", "values: {values}"),
    "string_too_long": ("{name} has {size:,} characters, but must have at most {max_length}", "shorten the text"),
    "string_too_short": ("{name} is empty", "{name}: {about}"),
    "greater_than_equal": ("{name} must be at least {ge}, not {given!r}", "{name}: {about}"),
    "date": ("{name}: {given!r} is not a valid date", "write YYYY-MM-DD"),
}
"""Kind of pydantic's error → message and hint."""


BY_PEOPLE: Final = "people are responsible for it, not agents"

Server = Annotated[
    str, param("Server in this workspace", examples=["bookshop"], argument=True, metavar="NAME", names="servers")
]
Servers = Annotated[
    tuple[str, ...],
    param(
        "Servers in this workspace [default: all]",
        examples=[["bookshop"]],
        argument=True,
        metavar="NAME",
        names="servers",
    ),
]
Channel = Annotated[str, param("Use this channel", metavar="CHANNEL", names="channels")]
Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=MAX_REASON_LENGTH),
    param("Record this reason with the decision", flags=("--reason", "-m")),
]
Yes = Annotated[bool, param("Skip the confirmation prompt", flags=("--yes", "-y"), omit={"mcp": BY_PEOPLE})]
