"""Draws docs/reference/cli.md from the commands themselves: `python -m mcpfactory.reference > docs/reference/cli.md`."""

from __future__ import annotations

import sys
from typing import Any

import typer

from mcpfactory.main import app

__all__ = ["cli_reference"]

_HEAD = """\
# Command line

Drawn from the commands by `python -m mcpfactory.reference`; a test fails when it is out of date.
Data goes to stdout, everything else to stderr. `--json` prints one JSON document. Exit codes: [exit-codes.md](exit-codes.md).
`mcpfactory --install-completion` teaches your shell the names of commands, servers, stages and templates.
"""


def cli_reference() -> str:
    """The whole page."""
    root: Any = typer.main.get_command(app)
    return "\n".join([_HEAD, *_sections("mcpfactory", root)]).rstrip() + "\n"


def _sections(path: str, command: Any) -> list[str]:
    if hasattr(command, "commands"):
        below = [text for name, child in command.commands.items() for text in _sections(f"{path} {name}", child)]
        acts = path != "mcpfactory" and command.invoke_without_command  # a command itself, not only the head of others
        return [*_section(path, command), *below] if acts else below
    return _section(path, command)


def _section(path: str, command: Any) -> list[str]:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
    usage = " ".join([path, *(_argument(argument) for argument in arguments), "[options]" if options else ""]).rstrip()
    rows = [f"| `{_argument(param)}` | {_help(param)} |" for param in arguments]
    rows += [f"| `{' / '.join([*param.opts, *param.secondary_opts])}` | {_help(param)} |" for param in options]
    return [f"## `{usage}`\n", f"{(command.help or '').strip()}\n", "| | |\n|---|---|", *rows, ""]


def _argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _help(param: Any) -> str:
    text = (getattr(param, "help", "") or "").replace("|", "\\|")
    default = param.default
    shown = isinstance(default, str | int | float) and not isinstance(default, bool) and default not in ("", 0)
    return f"{text} Default: `{default}`." if shown else text


if __name__ == "__main__":
    sys.stdout.write(cli_reference())
