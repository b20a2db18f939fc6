"""The `mcpfactory` program: the command table and the top-level error handler.

Commands are in `commands/`, those about one thing in one module. Each imports its implementation when it runs, so that
`--help` and completion stay fast.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from mcpfactory import output, version
from mcpfactory.commands import (
    adopt,
    call,
    ci,
    dashboard,
    doctor,
    evaluate,
    inbox,
    inspect,
    install,
    new,
    pipeline,
    release,
    remove,
    run,
    template,
    update,
    validate,
)
from mcpfactory_runtime.errors import Exit, McpfactoryError

_UNBROKEN: Final = 10_000  # columns of help in a pipe; wide, so that grep finds whole lines

app = typer.Typer(
    name="mcpfactory",
    help="Generate, test and release MCP servers from API documents or templates.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

app.command("init")(new.init)
app.command("new")(new.new)
app.command("adopt")(adopt.adopt)
app.add_typer(template.app, name="template")
app.command("inbox")(inbox.inbox)
app.command("inspect")(inspect.inspect)
app.command("run", context_settings={"allow_extra_args": False})(run.run)
app.command("call")(call.call)
app.command("login")(run.login)
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(ci.app, name="ci")
app.add_typer(release.app, name="release")
app.command("publish")(release.publish)
app.command("install")(install.install)
app.command("uninstall")(install.uninstall)
app.command("update")(update.update)
app.command("rename")(remove.rename)
app.command("remove")(remove.remove)
app.command("test")(validate.run_declared)
app.command("evaluate")(evaluate.evaluate)
app.command("diff")(update.diff)
app.command("validate")(validate.validate)
app.command("waive")(validate.waive)
app.command("serve")(run.serve)
app.command("dashboard")(dashboard.dashboard)
app.command("doctor")(doctor.doctor)


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
) -> None:
    from mcpfactory_pipeline.isolation.processes import hide_process

    hide_process()  # Many commands start code of servers, which must not read our environment.
    if context.invoked_subcommand is None and not inbox.greet():  # in a workspace: what waits; elsewhere: help
        output.line(context.get_help())
        raise typer.Exit(Exit.USAGE)


@functools.cache
def build_command() -> Any:
    """Return the tree of all commands; typer would build it again for each use, which takes 0.1 s."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line and end the process with a documented exit code; errors are words, never tracebacks."""
    try:
        width = None if output.width() else _UNBROKEN
        code = build_command()(prog_name="mcpfactory", standalone_mode=False, terminal_width=width)
        if code == Exit.INTERRUPTED:  # newer versions of typer make that of Ctrl-C themselves, without a word
            output.note("interrupted")
        sys.exit(code)
    except (KeyboardInterrupt, typer.Abort):
        output.note("interrupted")
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.OK)
    except Exception as error:  # noqa: BLE001 - the last boundary: whatever it is, a person gets words
        sys.exit(_report(error))


def _meant_command(message: str, words: Sequence[str]) -> str:
    """Return the command that has the name in question in the other place: at the top, or below `pipeline`; "" where neither has."""
    if not message.startswith("No such command"):
        return ""
    top = build_command()
    below = top.commands["pipeline"].commands
    if words[:1] == ["pipeline"]:
        name = next(iter(words[1:2]), "")
        return f"mcpfactory {name}" if name in top.commands else ""
    name = next(iter(words[:1]), "")
    return f"mcpfactory pipeline {name}" if name in below else ""


def _report(error: Exception) -> Exit:
    if callable(format_message := getattr(error, "format_message", None)):  # the command line itself was wrong
        if type(error).__name__ == "NoArgsIsHelpError":
            output.note(format_message())
            return Exit.USAGE
        path = context.command_path if (context := getattr(error, "ctx", None)) else "mcpfactory"
        hint = _meant_command(format_message(), sys.argv[1:]) or f"{path} --help"
        output.error(f"{path}: {format_message()}", hint)
        return Exit.USAGE
    error = of_machine(error) or error
    code = exit_of(error)
    if code is not None:
        output.error(str(error), getattr(error, "hint", ""))
        return code
    with tempfile.NamedTemporaryFile("w", prefix="mcpfactory-", suffix=".log", delete=False, encoding="utf-8") as log:
        traceback.print_exception(error, file=log)
    output.error(
        f"internal error: {type(error).__name__}: {error} (this is a bug)", f"report it with the file {log.name}"
    )
    return Exit.BUG


# --- which error ends in which exit code; documented in docs/reference/exit-codes.md ---


# What the machine says no to, wherever it happens: none of it is a mistake of mcpfactory.
_MACHINE: Final = {
    errno.EACCES: "make it readable and writable for you, or choose another place",
    errno.EPERM: "make it readable and writable for you, or choose another place",
    errno.EROFS: "choose a place that can be written",
    errno.ENOSPC: "free space, and run it again",
    errno.EDQUOT: "free space, and run it again",
    errno.EEXIST: "name a new place, or move what is there away",
    errno.ENOTDIR: "a file is where a folder is needed: name another place",
    errno.EISDIR: "a folder is where a file is needed: name another place",
    errno.ENOTEMPTY: "name a new place, or move what is there away",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "a link leads to itself: remove it",
    errno.EMFILE: "let a process open more files: ulimit -n 4096",
}


def exit_of(error: BaseException) -> Exit | None:
    """Return the exit code of an error with words for a person; None when the error is a bug."""
    return error.exit_code if isinstance(error, McpfactoryError) else None


def of_machine(error: BaseException) -> McpfactoryError | None:
    """Return the same as an error for a person, where the machine refused a file; None for any other."""
    if not isinstance(error, OSError) or error.filename is None or error.errno not in _MACHINE:
        return None
    names = " → ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    return McpfactoryError(f"{names}: {error.strerror}", _MACHINE[error.errno])
