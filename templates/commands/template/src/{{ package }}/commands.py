"""Commands of `commands.toml`: reads the file, and runs a command without a shell."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

__all__ = ["Argument", "Command", "CommandError", "Output", "read_commands"]

_LARGEST: Final = 50_000  # bytes of each output stream in a result
_END: Final = 2.0  # seconds to close the outputs of a killed command
_PASSED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT")  # variables that every command gets
_PLACE: Final = re.compile(r"\{(\w+)\}")

Value = str | int | float | bool


class CommandError(Exception):
    """Raised if a command cannot be run; the message is for a model."""


@dataclass(frozen=True, slots=True)
class Output:
    """Result of a command. `cut` is true if an output was longer than permitted."""

    exit_code: int
    output: str
    errors: str
    cut: bool


class Argument(BaseModel):
    """An argument of a command. Without a default, it is required."""

    model_config = ConfigDict(extra="forbid")

    description: str
    type: Literal["string", "integer", "number", "flag"] = "string"
    choices: list[str] = []
    pattern: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    default: Value | None = None
    flag: str = Field("", description="what a flag adds to the command line")

    def annotation(self) -> Any:
        """Return the type of the tool's parameter."""
        if self.choices:
            return Annotated[Literal[tuple(self.choices)], Field(description=self.description)]
        if self.type == "string":
            return Annotated[str, Field(description=self.description, pattern=self.pattern, max_length=1000)]
        if self.type == "flag":
            return Annotated[bool, Field(description=self.description)]
        number: type = int if self.type == "integer" else float
        return Annotated[number, Field(description=self.description, ge=self.minimum, le=self.maximum)]


class Command(BaseModel):
    """A command, which becomes a tool."""

    model_config = ConfigDict(extra="forbid")

    description: str
    run: list[str] = Field(min_length=1)
    arguments: dict[str, Argument] = {}
    read_only: bool = False
    timeout: float = Field(30, gt=0, description="seconds")
    directory: str | None = None
    environment: list[str] = Field([], description="further variables that the command gets")

    @model_validator(mode="after")
    def _uses_its_arguments(self) -> Command:
        used = {name for item in self.run for name in _PLACE.findall(item)}
        if used != set(self.arguments):
            raise ValueError(f"`run` uses {sorted(used)}, but `arguments` are {sorted(self.arguments)}")
        return self

    def line(self, values: dict[str, Value]) -> list[str]:
        """Return the command line. An item is omitted if a value in it is empty or false.

        Raises:
            CommandError: a value would become an option.
        """
        given = {name: values.get(name, argument.default) for name, argument in self.arguments.items()}
        texts = {name: self.arguments[name].flag * value if isinstance(value, bool) else str(value) for name, value in given.items()}
        line = []
        for item in self.run:
            names = _PLACE.findall(item)
            if any("\0" in texts[name] for name in names):
                raise CommandError("A value must not contain NUL.")
            first = _PLACE.match(item)
            if first and texts[first[1]].startswith("-") and self.arguments[first[1]].type == "string":
                raise CommandError(f"{first[1]} must not begin with a hyphen: {texts[first[1]]!r}.")
            if all(texts[name] for name in names):
                line.append(_PLACE.sub(lambda found: texts[found[1]], item))
        return line

    async def start(self, values: dict[str, Value]) -> Output:
        """Run the command, and end it with its child processes after the time limit or if the call is canceled.

        Raises:
            CommandError: it cannot be started, or takes too long.
        """
        environ = {name: os.environ[name] for name in (*_PASSED, *self.environment) if name in os.environ}
        try:
            process = await asyncio.create_subprocess_exec(
                *self.line(values), cwd=self.directory, env=environ, start_new_session=True,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise CommandError(f"{self.run[0]} cannot be started: {error.strerror}.") from None
        try:
            async with asyncio.timeout(self.timeout):
                return await _result(process)
        except TimeoutError:
            raise CommandError(f"{self.run[0]} timed out after {self.timeout:g} seconds.") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(TimeoutError):
                await asyncio.wait_for(_result(process), _END)


def read_commands(file: Path) -> dict[str, Command]:
    """Read the commands, by the names of their tools.

    Raises:
        ValueError: the file is invalid.
    """
    try:
        return TypeAdapter(dict[str, Command]).validate_python(tomllib.loads(file.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{file.name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


async def _result(process: asyncio.subprocess.Process) -> Output:
    """Read both outputs to their ends, and return them."""
    assert process.stdout
    assert process.stderr
    (output, more), (errors, others), code = await asyncio.gather(_kept(process.stdout), _kept(process.stderr), process.wait())
    return Output(code, output, errors, more or others)


async def _kept(stream: asyncio.StreamReader) -> tuple[str, bool]:
    """Read a stream to its end; return its beginning, and True if there was more."""
    kept, size = bytearray(), 0
    while data := await stream.read(65_536):
        size += len(data)
        kept += data[: _LARGEST - len(kept)]
    return kept.decode("utf-8", "replace"), size > len(kept)
