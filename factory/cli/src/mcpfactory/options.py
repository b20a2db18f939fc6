"""Arguments and options that several commands share, under one name and one help text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcpfactory import complete, output
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.workspace.workspace import Workspace

Answers = Annotated[
    list[str] | None,
    typer.Option("--answer", metavar="NAME=VALUE", help="An answer to a question of the template; repeatable."),
]
AnswersFile = Annotated[
    Path | None,
    typer.Option("--answers", metavar="FILE", help="Answers to the template's questions: TOML, YAML or JSON."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Candidate = Annotated[
    str,
    typer.Option(
        metavar="CANDIDATE", help="The beginning of a candidate's id; by default what the channel before offers."
    ),
]
Channel = Annotated[
    str,
    typer.Option("--channel", metavar="CHANNEL", help="The channel it is about.", autocompletion=complete.channels),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check everything, say what would be done, and change nothing.")
]
Factory = Annotated[
    str,
    typer.Option(
        metavar="ORIGIN",
        help="Where CI jobs and uv take mcpfactory from: `vendored` (its wheels in tools/mcpfactory/) or a folder with a slash at "
        "its end, `git` (the repository that it was installed from) or git+https://…@REF, or `index`. By default the repository, "
        "where anybody can read it, else vendored.",
        autocompletion=complete.origins,
    ),
]
Host = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS",
        help="Address to listen on; beyond loopback others reach it: `run` and `serve` then want authorization, `dashboard` lets nobody act.",
    ),
]
Demo = Annotated[bool, typer.Option("--demo", help="Serve the example data of the server's template.")]
Http = Annotated[bool, typer.Option("--http", help="Serve Streamable HTTP at /mcp instead of speaking on stdio.")]
Mode = Annotated[
    str,
    typer.Option(
        metavar="full|search",
        help="How a generated server presents its tools. full: each in the list; search: three tools that find, describe and "
        "call the others.",
    ),
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A server of this workspace.", autocompletion=complete.servers)
]
OptionalName = Annotated[
    str, typer.Argument(metavar="[NAME]", help="A server of this workspace.", autocompletion=complete.servers)
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", help="Servers of this workspace; none means all.", autocompletion=complete.servers
    ),
]
Port = Annotated[int, typer.Option(metavar="PORT", help="Port to listen on; 0 takes a free one.", min=0, max=65535)]
Provider = Annotated[
    str,
    typer.Option(metavar="PROVIDER", help="The CI provider: github or gitlab.", autocompletion=complete.providers),
]
Reason = Annotated[str, typer.Option("--reason", "-m", help="Why; kept with what is decided.")]
RequiredReason = Annotated[
    str, typer.Option("--reason", "-m", help="Why; kept with what is decided. Required.", show_default=False)
]
Refresh = Annotated[
    bool,
    typer.Option(
        "--refresh",
        help="Read the API documents again where they came from, and ask whether adopted servers still are what was adopted; needs the network.",
    ),
]
Root = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="FOLDER", help="The workspace; by default the one around the current folder."),
]
Show = Annotated[
    int,
    typer.Option("--show", metavar="N", min=0, help="Show so many at most, the newest or most urgent; 0 means all."),
]
SignWith = Annotated[
    Path | None,
    typer.Option(
        "--sign-with", metavar="KEY", help="Sign it with this ssh key, as a channel or stage with `signed` asks for."
    ),
]
Stage = Annotated[
    str,
    typer.Option(
        "--stage",
        metavar="STAGE",
        help="A stage of kind approval, instead of a channel.",
        autocompletion=complete.stages,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def check_provider(name: str) -> None:
    """Exit with a usage error if the provider is unknown."""
    from mcpfactory_pipeline.delivery.ci.providers import PROVIDERS

    if name and name not in PROVIDERS:
        output.fail(f"there is no provider {name!r}", f"providers: {', '.join(PROVIDERS)}", Exit.USAGE)


TemplateOption = Annotated[
    str,
    typer.Option(
        "--template",
        metavar="TEMPLATE",
        help="A shipped template's name, a folder, git+https://…@REF#subdirectory=…, or package:NAME==VERSION.",
        autocompletion=complete.templates,
    ),
]
Trust = Annotated[bool, typer.Option("--trust", help="Use a template of git or of a package without being asked.")]


def answers_of(file: Path | None, typed: list[str] | None) -> dict[str, Any]:
    """Return the answers of a file, and those that were typed, which go before.

    Raises:
        TemplateSourceError: one cannot be read.
    """
    from mcpfactory_codegen.servers.answers import load_answers, typed_answers

    return {**(load_answers(file) if file else {}), **typed_answers(typed or [])}


def trusted(template: str, files: Callable[[], Iterable[str]], *, trust: bool, as_json: bool) -> None:
    """Ask for confirmation before using a fetched template, and exit if it is refused.

    The template is described before the question.

    Args:
        template: its source; shipped templates and local folders need no confirmation.
        files: returns the files that the template would write.
        trust: confirmed in advance.
        as_json: the output is read by a program, so no question can be asked.
    """
    from mcpfactory_codegen.servers.scaffold import find_template
    from mcpfactory_codegen.servers.templates import parse_source

    if trust or not template or not parse_source(template).foreign:
        return
    found = find_template(template)
    paths = list(files())
    output.note(f"template {found.name} of somebody else, {found.origin}, writes {len(paths)} files:")
    for path in paths:
        output.note(f"  {path}")
    output.note("its tests and its code run when the server is tested and started")
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        output.fail(
            f"nobody can be asked whether {template} is to be used",
            f"look at it with mcpfactory template show {template}, then add --trust",
            Exit.USAGE,
        )
    if not typer.confirm("Use it?", err=True):
        output.fail("nothing was made", "mcpfactory template list has those that are shipped", Exit.NO)


def workspace_in(folder: Path | None = None) -> Workspace:
    """Return the workspace that `--workspace` names, or the one around the current folder.

    Raises:
        WorkspaceError: when the folder does not exist, or is in no workspace.
    """
    from mcpfactory_pipeline.base.errors import WorkspaceError
    from mcpfactory_pipeline.workspace.workspace import Workspace

    if (
        folder is not None and not folder.is_dir()
    ):  # its parents are not searched: the folder that was named is not there
        raise WorkspaceError(f"--workspace {folder} is no folder", hint="name the folder of a workspace")
    return Workspace.find(folder or Path.cwd())
