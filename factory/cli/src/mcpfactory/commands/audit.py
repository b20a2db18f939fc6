from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mcpfactory import complete, output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson
from mcpfactory.progress import progress

if TYPE_CHECKING:
    from mcpfactory_pipeline.audit import AuditReport, AuditRequest
    from mcpfactory_pipeline.audit.accepted import AcceptedServer
    from mcpfactory_pipeline.audit.rule import AuditEvidence

_FORMATS: Final = ("text", "json", "markdown", "sarif")  # of audit.formats, which is not loaded for help
_FILES: Final = ("all", "user", "project")
_ENDINGS: Final = {"text": "txt", "json": "json", "markdown": "md", "sarif": "sarif"}
_STYLES: Final = {0: "good", 1: "bad"}


_Clients = Annotated[
    list[str] | None,
    typer.Option(
        "--client",
        "-c",
        metavar="CLIENT",
        help="Whose files; repeatable. By default all clients.",
        autocompletion=complete.clients,
    ),
]
_Configs = Annotated[
    list[Path] | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A file in place of those of the clients; repeatable. --client says whose it is.",
    ),
]
_Files = Annotated[
    str, typer.Option(metavar="all|user|project", help="The user's files, those of the project, or both.")
]
_Folder = Annotated[Path | None, typer.Option(metavar="FOLDER", help="The project; by default the current folder.")]
_Start = Annotated[
    bool, typer.Option("--start", help="Start each server, kept apart and without secrets, and look at its tools.")
]
_WithSecrets = Annotated[
    bool, typer.Option("--with-secrets", help="With --start: hand servers what their configuration gives them.")
]
_Isolation = Annotated[
    str, typer.Option(metavar="LEVEL", help="With --start: how servers are kept apart, as `isolation` in [pipeline].")
]
_Timeout = Annotated[float, typer.Option(help="With --start: seconds for each server.", min=0.1)]
_Lock = Annotated[Path | None, typer.Option(metavar="FILE", help="What was accepted; what differs is a finding.")]
_Accept = Annotated[bool, typer.Option("--accept", help="Write what is there now into the file of --lock.")]
_FailOn = Annotated[
    int,
    typer.Option(metavar="1|2|3|5", help="The severity from which findings make the exit code 1.", min=1, max=5),
]
_Format = Annotated[
    str,
    typer.Option("--format", "-f", help=f"The form of the report: {', '.join(_FORMATS)}."),
]
_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE|FOLDER", help="Where it goes, besides the text on stdout."),
]
_Explain = Annotated[str, typer.Option(metavar="RULE", help="Say what a rule looks for and why; audit nothing.")]


def audit(
    clients: _Clients = None,
    configs: _Configs = None,
    files: _Files = "all",
    folder: _Folder = None,
    start: _Start = False,
    with_secrets: _WithSecrets = False,
    isolation: _Isolation = "auto",
    timeout: _Timeout = 60.0,
    lock: _Lock = None,
    accept: _Accept = False,
    fail_on: _FailOn = 3,
    format_: _Format = "text",
    target: _Output = None,
    explain: _Explain = "",
    as_json: AsJson = False,
) -> None:
    """Look at the servers that MCP clients of this machine start: what they are, what they reach, and what is risky about them."""
    from mcpfactory_pipeline.audit import audit as run_audit
    from mcpfactory_pipeline.clients.files import this_machine

    if explain:
        _explain(explain, as_json=as_json)
        return
    _check_words(files, format_, start=start, only_started=with_secrets, lock=lock, accept=accept)
    home = this_machine(os.environ)
    request = _request(clients or [], configs or [], files, folder)
    request = _with_start(request, timeout, isolation, with_secrets=with_secrets) if start else request
    known = _read_lock(lock, accept=accept) if lock is not None else None
    from dataclasses import replace

    with progress(quiet=as_json) as step:
        report, evidence = run_audit(replace(request, accepted=known), home, step)
    _write(report, "json" if as_json else format_, target)
    if accept and lock is not None:
        _write_lock(lock, evidence)
        return
    if report.at_least(fail_on):
        raise typer.Exit(Exit.NO)


def _check_words(files: str, format_: str, *, start: bool, only_started: bool, lock: Path | None, accept: bool) -> None:
    """End the command where the words do not go together."""
    if files not in _FILES:
        output.fail(f"--files {files}: there is none", f"one of {', '.join(_FILES)}", Exit.USAGE)
    if format_ not in _FORMATS:
        output.fail(f"there is no format {format_!r}", f"formats: {', '.join(_FORMATS)}", Exit.USAGE)
    if only_started and not start:
        output.fail("--with-secrets is for servers that are started", "add --start", Exit.USAGE)
    if accept and lock is None:
        output.fail("--accept needs a file to write to", "--lock FILE --accept", Exit.USAGE)


def _request(clients: list[str], configs: list[Path], files: str, folder: Path | None) -> AuditRequest:
    from mcpfactory_pipeline.audit import AuditRequest
    from mcpfactory_pipeline.clients.install import select_clients

    rows = select_clients(clients) if clients else []
    if len(configs) and len(rows) > 1:
        output.fail("a file is that of one client", "give one --client with --config, or none", Exit.USAGE)
    project = None if files == "user" else (folder or Path.cwd()).resolve()
    return AuditRequest(tuple(rows), tuple(configs), project, user=files != "project")


def _with_start(request: AuditRequest, timeout: float, isolation: str, *, with_secrets: bool) -> AuditRequest:
    from dataclasses import replace

    from mcpfactory_pipeline.audit.start import StartRequest
    from mcpfactory_pipeline.isolation.levels import AUTO, LEVELS, REQUIRED

    if isolation not in {AUTO, REQUIRED, *LEVELS}:
        output.fail(
            f"there is no isolation {isolation!r}", f"levels: {', '.join((AUTO, REQUIRED, *LEVELS))}", Exit.USAGE
        )
    return replace(request, start=StartRequest(timeout, isolation, with_secrets))


def _read_lock(lock: Path, *, accept: bool) -> dict[str, AcceptedServer]:
    from mcpfactory_pipeline.audit.accepted import read_lock

    try:
        text = lock.read_bytes()
    except FileNotFoundError:
        if accept:
            return {}
        output.fail(f"there is no lock {lock}", f"mcpfactory audit --lock {lock} --accept writes it", Exit.NOT_FOUND)
    except OSError as error:
        output.fail(f"{lock} cannot be read: {error.strerror}", "make it readable", Exit.BAD_INPUT)
    return read_lock(text, str(lock))


def _write_lock(lock: Path, evidence: AuditEvidence) -> None:
    from mcpfactory_pipeline.audit.accepted import lock_text
    from mcpfactory_pipeline.audit.audit import now_accepted
    from mcpfactory_pipeline.base.files import replace_file

    servers = now_accepted(evidence)
    try:
        replace_file(lock, lock_text(servers).encode())
    except OSError as error:
        output.fail(f"{lock} cannot be written: {error.strerror}", "name a file in a folder that you own", Exit.BROKEN)
    output.note(f"wrote {lock}: {len(servers)} servers are accepted")


def _write(report: AuditReport, format_: str, target: Path | None) -> None:
    """Write the report. Ends the command when a file cannot be written."""
    from mcpfactory_pipeline.audit.formats import FORMATS, headline, to_text

    if target is not None:
        target = target / f"audit.{_ENDINGS[format_]}" if target.is_dir() else target
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(FORMATS[format_](report), encoding="utf-8")
        except OSError as error:
            output.fail(
                f"{target} cannot be written: {error.strerror}", "name a file in a folder that you own", Exit.BROKEN
            )
        output.note(f"wrote {target}")
        format_ = "text"
    if format_ == "text":
        output.line(output.styled(headline(report), _STYLES[bool(report.at_least(3))]))
        output.raw(to_text(report, output.width()).partition("\n")[2])
    else:
        output.document(FORMATS[format_](report))


def _explain(rule: str, *, as_json: bool) -> None:
    from mcpfactory.explained import explain
    from mcpfactory_pipeline.audit import RULES
    from mcpfactory_pipeline.audit.reference import explain_rule, rule_to_json

    explain(rule, RULES, explain_rule, rule_to_json, as_json=as_json)
