"""Command groups that import each command on first use, so that `--help` starts fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from itertools import groupby
from typing import Any, ClassVar, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from mcpfactory.examples import EXAMPLES

CONTEXT: Final[dict[Any, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Settings of all commands."""

_FIELDS: Final = {
    "Selection": ("include_tags", "include_paths", "include_operations", "include_methods"),
    "Model": ("model", "repeat", "max_cost", "baseline"),
    "HTTP": ("http", "host", "port", "open_", "token", "public_url"),
    "Output": ("dry_run", "format_", "outputs", "report", "as_json"),
}
_SECTIONS: Final = {field: section for section, fields in _FIELDS.items() for field in fields}


class CommandEntry(NamedTuple):
    """An entry of the command table.

    `target` is the `module:name` of a function, an app or an operation. `summary` copies the first sentence of the
    command's help, so that a list of commands imports no command.
    """

    section: str
    target: str
    summary: str


class _Base:
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a repeated option, because the parser would silently use only the last value."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))  # type: ignore[attr-defined] # every click command has `make_parser`
        for param, times in Counter(given).items():
            repeatable = any(getattr(param, kind, True) for kind in ("multiple", "is_flag", "count"))
            # shell completion passes incomplete command lines
            if times > 1 and not (repeatable or ctx.resilient_parsing):
                ctx.fail(f"{max(param.opts, key=len)} was given {times} times")
        return super().parse_args(ctx, args)  # type: ignore[misc,no-any-return] # every click command has `parse_args`

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options in their sections."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", "Options", *_FIELDS)}
        for param in self.get_params(ctx):  # type: ignore[attr-defined] # every click command has `get_params`
            if (row := param.get_help_record(ctx)) is None:
                continue
            if param.param_type_name == "argument":
                # leave out the Python type of the argument
                sections["Arguments"].append((row[0].partition(" <")[0], row[1]))
            else:
                sections[_SECTIONS.get(param.name, "Options")].append(row)
        for section, rows in sections.items():
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples at the end of the help."""
        if lines := EXAMPLES.get(ctx.command_path.partition(" ")[2]):
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in lines))


class Command(_Base, TyperCommand):
    """A single command."""


class Group(_Base, TyperGroup):
    """A command group whose commands are functions."""


class LazyGroup(Group):
    """A group whose commands are in `entries`."""

    entries: ClassVar[Mapping[str, CommandEntry]] = {}

    @cached_property
    def loaded(self) -> dict[str, Any]:
        """Return the commands that are already imported."""
        return {}

    @property  # type: ignore[override] # `commands` is an attribute in click
    def commands(self) -> dict[str, Any]:
        """Import and return all commands."""
        return {name: self.get_command(None, name) for name in self.entries}

    @commands.setter
    def commands(self, _none: Any) -> None:
        """Ignore the commands that typer sets, because `entries` already lists all commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands in the order of help texts."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command, or None if the name is unknown."""
        if cmd_name not in self.loaded and (entry := self.entries.get(cmd_name)):
            module, _, name = entry.target.partition(":")
            self.loaded[cmd_name] = _build(cmd_name, getattr(import_module(module), name))
        return self.loaded.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by section. Only the section “Advanced” omits summaries."""
        for section, entries in groupby(self.entries.items(), key=lambda item: item[1].section):
            with formatter.section(section):
                if section == "Advanced":
                    formatter.write_text(", ".join(name for name, _ in entries))
                else:
                    formatter.write_dl([(name.ljust(9), entry.summary) for name, entry in entries])


def lazy_group(entries: Mapping[str, CommandEntry]) -> type[TyperGroup]:
    """Return a group of the given commands, for `typer.Typer(cls=…)`."""
    return type("Commands", (LazyGroup,), {"entries": entries})


def _build(name: str, found: Any) -> Any:
    if isinstance(found, typer.Typer):
        # Set the mode here, because typer passes on the top app's mode only if it builds all groups at once.
        found.rich_markup_mode = None
        found.info.context_settings = CONTEXT
        found._add_completion = False  # noqa: SLF001 - only the top app has completion
        if not isinstance(found.info.cls, type):
            found.info.cls = Group
        for one in found.registered_commands:
            one.cls = Command
        return typer.main.get_command(found)
    if isinstance(found, type):
        from mcpfactory.operations import make_typer_command

        found = make_typer_command(found)
    single = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
    single.command(name, cls=Command)(found)
    return typer.main.get_command(single)
