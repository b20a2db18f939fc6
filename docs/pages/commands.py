"""Generate the page `docs/reference/cli.md` from the commands when the site is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mcpfactory.examples import EXAMPLES
from mcpfactory.main import build_command_tree

# Reasons why these commands lack `--json`; every other command has it.
NO_JSON: Final = {
    "mcpfactory": "use `mcpfactory inbox --json`",
    "mcpfactory demo-api": "it serves an API until it is ended",
    "mcpfactory run": "the server speaks MCP on stdout",
    "mcpfactory serve": "the factory's server speaks MCP on stdout",
    "mcpfactory schema": "it always prints JSON",
    "mcpfactory login": "it is interactive; the exit code is its result",
    "mcpfactory ci run": "stdout is the log of a CI job",
    "mcpfactory ci pack": "its result is a folder",
    "mcpfactory ci fold": "its result is the workspace; `--summary` writes a summary",
    "mcpfactory release check": "`--provider` prints the values for CI jobs",
}

_HEAD: Final = """\
# Command line

Data goes to stdout, everything else to stderr. `--json` prints one JSON document. Exit codes: [exit-codes.md](exit-codes.md).
`mcpfactory --install-completion` adds completion of commands, servers, tools, stages, channels, clients and templates to your shell.
"""


def cli_reference() -> str:
    """Return the page as Markdown."""
    without = [f"- `{path}`: {why}." for path, why in NO_JSON.items()]
    sections = [text for path, command in commands() if path != "mcpfactory" for text in _section(path, command)]
    return "\n".join([_HEAD, "Every command has `--json`, except:\n", *without, "", *sections]).rstrip() + "\n"


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command line with its parser command; groups only if they run without a subcommand."""
    yield from _below("mcpfactory", build_command_tree())


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands") or command.invoke_without_command:
        yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _below(f"{path} {name}", child)


def _section(path: str, command: Any) -> list[str]:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
    usage = " ".join([path, *(_argument(argument) for argument in arguments), "[options]" if options else ""]).rstrip()
    rows = [f"| `{_argument(param)}` | {_help(param)} |" for param in arguments]
    rows += [f"| `{' / '.join([*param.opts, *param.secondary_opts])}` | {_help(param)} |" for param in options]
    table = ["| argument or option | meaning |\n|---|---|", *rows, ""] if rows else []
    examples = ["```console", *(f"$ {line}" for line in EXAMPLES[path.partition(" ")[2]]), "```\n"]
    return [f"## `{usage}`\n", f"{(command.help or '').strip()}\n", *examples, *table]


def _argument(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _help(param: Any) -> str:
    text = (getattr(param, "help", "") or "").replace("|", "\\|")
    default = param.default
    shown = isinstance(default, str | int | float) and not isinstance(default, bool) and default not in ("", 0)
    return f"{text} [default: `{default}`]" if shown else text
