"""The `mcpfactory` program: the command table and the top-level error handler.

Each command is imported on first use, so that the other commands start fast.
"""

from __future__ import annotations

import errno
import functools
import gc
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from mcpfactory import output, version
from mcpfactory.command_groups import CONTEXT, CommandEntry, lazy_group
from mcpfactory_runtime.errors import Exit, McpfactoryError

# number of objects between two garbage collections; the default 700 slows down commands about many servers
_ALLOCATIONS: Final = 100_000
_UNBROKEN: Final = 10_000  # columns of help text in a pipe; wide, so that grep prints whole lines

_COMMANDS: Final = "mcpfactory.commands"
_OPERATIONS: Final = "mcpfactory_pipeline.operations"
COMMANDS: Final = {
    "init": CommandEntry("Create", f"{_COMMANDS}.init:init", "Create a workspace for MCP servers and their state"),
    "new": CommandEntry("Create", f"{_COMMANDS}.servers:new", "Create a server from an API document or a template"),
    "demo-api": CommandEntry("Create", f"{_COMMANDS}.demo_api:demo_api", "Start the example API of the tutorial, a bookshop"),
    "adopt": CommandEntry("Create", f"{_COMMANDS}.servers:adopt", "Add an existing server to the workspace, unchanged"),
    "run": CommandEntry("Use", f"{_COMMANDS}.run:run", "Start a server on stdio or over HTTP"),
    "call": CommandEntry("Use", f"{_COMMANDS}.run:call", "Call a tool of a server and print the result"),
    "inspect": CommandEntry("Use", f"{_COMMANDS}.inspect:inspect", "Show a server's tools, arguments and token cost"),
    "login": CommandEntry("Use", f"{_COMMANDS}.run:login", "Log in to the API of a server (OAuth 2)"),
    "inbox": CommandEntry("Pipeline", f"{_COMMANDS}.inbox:inbox", "Show what needs your attention and the next commands"),
    "pipeline": CommandEntry("Pipeline", f"{_COMMANDS}.pipeline:app", "Generate, build, test, validate and promote servers"),
    "test": CommandEntry("Pipeline", f"{_COMMANDS}.test_:run_declared", "Run the declared tests of a server"),
    "validate": CommandEntry("Pipeline", f"{_COMMANDS}.validate:validate", "Check an MCP server written in any language"),
    "evaluate": CommandEntry("Pipeline", f"{_COMMANDS}.evaluate:evaluate", "Check that questions select the right tools"),
    "release": CommandEntry("Publish", f"{_COMMANDS}.release:app", "Release servers: version, changelog, commit and tag"),
    "publish": CommandEntry("Publish", f"{_OPERATIONS}.publish:Publish", "Publish a server's release from a channel"),
    "install": CommandEntry("Publish", f"{_COMMANDS}.servers:install", "Add a server to the configuration of MCP clients"),
    "dashboard": CommandEntry("Operate", f"{_COMMANDS}.dashboard:dashboard", "Show the status of all servers in a browser"),
    "serve": CommandEntry("Operate", f"{_COMMANDS}.serve:serve", "Serve the factory, or a gateway to servers, over MCP"),
    "doctor": CommandEntry("Operate", f"{_COMMANDS}.doctor:doctor", "Check this machine, the workspace and server credentials"),
    "update": CommandEntry("Operate", f"{_COMMANDS}.servers:update", "Update a server after its document or template changed"),
    "template": CommandEntry("Advanced", f"{_COMMANDS}.template:app", "Manage templates from mcpfactory, folders, git and packages"),
    "diff": CommandEntry("Advanced", f"{_COMMANDS}.servers:diff", "Compare a server's tools with the tools that callers use"),
    "waive": CommandEntry("Advanced", f"{_OPERATIONS}.decisions:Waive", "Accept the findings of a rule until a date, with a reason"),
    "rename": CommandEntry("Advanced", f"{_OPERATIONS}.removal:Rename", "Rename a server"),
    "remove": CommandEntry("Advanced", f"{_OPERATIONS}.removal:Remove", "Remove a server and its channel releases"),
    "uninstall": CommandEntry("Advanced", f"{_OPERATIONS}.install:Uninstall", "Remove a server from the configuration of MCP clients"),
    "ci": CommandEntry("Advanced", f"{_COMMANDS}.ci:app", "Run the pipeline in CI: assign jobs and merge results"),
    "schema": CommandEntry("Advanced", f"{_COMMANDS}.init:schema", "Print the JSON Schema of mcpfactory.toml, for editors"),
}  # fmt: skip

_EVERYDAY: Final = ("init", "new", "call", "pipeline", "dashboard", "doctor")  # in the order of their first use

app = typer.Typer(
    name="mcpfactory",
    help="Generate, test and release MCP servers from API documents or templates.",
    cls=lazy_group(COMMANDS),
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=CONTEXT,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        output.line(f"mcpfactory {version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit", callback=_print_version, is_eager=True)
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Log the steps of a command to stderr; -vv logs more",
        ),
    ] = 0,
) -> None:
    if level := os.environ.get("MCPFACTORY_LOG", "") or ("", "info", "debug")[min(verbose, 2)]:
        from mcpfactory.output import log_to_stderr

        log_to_stderr(level)
    from mcpfactory.commands.inbox import print_inbox_summary
    from mcpfactory_pipeline.isolation.processes import hide_process

    hide_process()  # many commands start server code, which must not read the environment of this process
    if context.invoked_subcommand is None and not print_inbox_summary():
        output.line("no workspace here; everyday commands:")
        output.line()
        for name in _EVERYDAY:
            output.line(f"  mcpfactory {name:10} {COMMANDS[name].summary}")
        output.line()
        output.line("all commands: mcpfactory --help")
        raise typer.Exit(Exit.USAGE)


@functools.cache
def build_command_tree() -> Any:
    """Build the tree of all commands once, because building takes 0.1 s."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line, and exit with a documented code instead of a traceback."""
    gc.set_threshold(_ALLOCATIONS)
    try:
        width = None if output.width() else _UNBROKEN
        code = build_command_tree()(prog_name="mcpfactory", standalone_mode=False, terminal_width=width)
        if code == Exit.INTERRUPTED:  # newer versions of typer handle Ctrl-C themselves, without a message
            output.note("interrupted")
        sys.exit(code)
    except (KeyboardInterrupt, typer.Abort):
        output.note("interrupted")
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:  # the reader of stdout exited, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.OK)
    except Exception as error:  # noqa: BLE001 - last boundary, so that users see no traceback
        sys.exit(_report(error))


def _meant_command(message: str, words: Sequence[str]) -> str:
    """Return the command for a name that was used at the wrong level (top or `pipeline`), or ""."""
    if not message.startswith("No such command"):
        return ""
    from mcpfactory.commands.pipeline import COMMANDS as BELOW

    if words[:1] == ["pipeline"]:
        name = next(iter(words[1:2]), "")
        return f"mcpfactory {name}" if name in COMMANDS else ""
    name = next(iter(words[:1]), "")
    return f"mcpfactory pipeline {name}" if name in BELOW else ""


def _report(error: Exception) -> Exit:
    # Click raises this exception for a usage error.
    if callable(format_message := getattr(error, "format_message", None)):
        if type(error).__name__ == "NoArgsIsHelpError":
            output.note(format_message())
            return Exit.USAGE
        path = context.command_path if (context := getattr(error, "ctx", None)) else "mcpfactory"
        message, then = format_message(), "--help"
        if context and context.parent and hasattr(context.command, "list_commands"):
            then = "|".join(context.command.list_commands(context))
        output.error(f"{path}: {message}", _meant_command(message, sys.argv[1:]) or f"{path} {then}")
        return Exit.USAGE
    error = convert_os_error(error) or error
    code = error.exit_code if isinstance(error, McpfactoryError) else None
    if code is not None:
        output.error(str(error), getattr(error, "hint", ""))
        return code
    with tempfile.NamedTemporaryFile("w", prefix="mcpfactory-", suffix=".log", delete=False, encoding="utf-8") as log:
        traceback.print_exception(error, file=log)
    output.error(
        f"internal error: {type(error).__name__}: {error} (this is a bug)", f"report it with the file {log.name}"
    )
    return Exit.INTERNAL_ERROR


# --- exit code of each error, as documented in docs/reference/exit-codes.md ---


# errors of the operating system that any operation may raise, with hints
_MACHINE: Final = {
    errno.EACCES: "make it readable and writable for you, or use another path",
    errno.EPERM: "make it readable and writable for you, or use another path",
    errno.EROFS: "use a path on a writable file system",
    errno.ENOSPC: "free space, and run it again",
    errno.EDQUOT: "free space, and run it again",
    errno.EEXIST: "use a new path, or move the existing file away",
    errno.ENOTDIR: "part of the path is a file, not a folder: use another path",
    errno.EISDIR: "the path is a folder, not a file: use another path",
    errno.ENOTEMPTY: "use a new path, or empty the folder",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "a symlink points to itself: remove it",
    errno.EMFILE: "let a process open more files: ulimit -n 4096",
}


def convert_os_error(error: BaseException) -> McpfactoryError | None:
    """Convert an operating system error about a file to an error with a hint, or return None."""
    if not isinstance(error, OSError) or error.filename is None or error.errno not in _MACHINE:
        return None
    names = " → ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    return McpfactoryError(f"{names}: {error.strerror}", _MACHINE[error.errno])
