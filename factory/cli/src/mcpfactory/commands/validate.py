from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from mcpfactory import completion, output
from mcpfactory.options import AsJson, selected_workspace
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.report import ValidationReport
    from mcpfactory_runtime.client.oauth import OAuth


# copied from `checks.formats`, because importing that module would slow down `--help`
_FORMATS: Final = ("text", "json", "junit", "sarif", "markdown", "html", "badge")
_POLICIES: Final = ("findings", "promotion")
_STYLES: Final = {"passed": "good", "not shown": "warn", "refused": "bad"}
_Destinations = list[tuple[str, Path | None]]
_Limits = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=NUMBER",
        help=(
            "Fail above this limit: max_start_ms, max_call_ms or max_memory_mb (repeatable); for a server in this workspace, "
            "the strictest channel limits also apply"
        ),
    ),
]

_Cases = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=(
            'With --command or --url: JSON file with calls that must work: [{"tool": "add", "arguments": {"a": 1}}, …]'
        ),
    ),
]

_WriteCases = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a file for --cases with one call of each tool")
]

_Env = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=VALUE]",
        help="Set a variable for --command, masked in reports; NAME alone copies the current value (repeatable)",
    ),
]

_Headers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="With --url: send this HTTP header, masked in reports (repeatable)",
    ),
]

_ClientId = Annotated[str, typer.Option(metavar="ID", help="With --url: get a token with this OAuth client ID")]
_ClientSecretEnv = Annotated[str, typer.Option(metavar="NAME", help="Read the OAuth client secret from this variable")]
_Issuer = Annotated[str, typer.Option(metavar="URL", help="Send the client secret only to this authorization server")]
_Scopes = Annotated[list[str] | None, typer.Option(metavar="SCOPE", help="Request this OAuth scope (repeatable)")]

_AllowCalls = Annotated[
    bool, typer.Option("--allow-calls", help="Also call tools that may change data, except destructive ones")
]

_PolicyName = Annotated[
    str,
    typer.Option(
        metavar="findings|promotion",
        help="Fail on findings, or with 'promotion' also on unverified checks [default for a workspace server: promotion]",
    ),
]

_Explain = Annotated[str, typer.Option(metavar="RULE", help="Only print the requirement, source and fix of this rule")]


def validate(
    name: Annotated[
        str,
        typer.Argument(help="Validate the source of this server in the workspace", autocompletion=completion.servers),
    ] = "",
    command: Annotated[
        str, typer.Option(metavar="COMMAND", help="Use the MCP server that this command starts on stdio")
    ] = "",
    url: Annotated[str, typer.Option(metavar="URL", help="Validate the MCP server at this Streamable HTTP URL")] = "",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Stop the validation after this number of seconds", min=1)
    ] = 60.0,
    format_: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help=f"Write the report in this format (repeatable): {', '.join(_FORMATS)}",
        ),
    ] = None,
    outputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help=(
                "Write reports to this file (one for each --format) or folder (for all); without --format, the file name selects "
                "the format"
            ),
        ),
    ] = None,
    limit: _Limits = None,
    cases: _Cases = None,
    write_cases: _WriteCases = None,
    env: _Env = None,
    header: _Headers = None,
    oauth_client_id: _ClientId = "",
    oauth_client_secret_env: _ClientSecretEnv = "",
    oauth_issuer: _Issuer = "",
    oauth_scope: _Scopes = None,
    allow_calls: _AllowCalls = False,
    policy: _PolicyName = "findings",
    explain: _Explain = "",
    as_json: AsJson = False,
) -> None:
    """Check an MCP server written in any language.

    The report lists the problems of the server, with evidence.
    """
    if explain:
        _explain(explain, as_json=as_json)
        return
    if sum(map(bool, (name, command, url))) != 1:
        output.usage_error(
            "give exactly one of NAME, --command and --url", "mcpfactory validate --command 'python -m my_server'"
        )
    if Path(name).is_file():
        output.usage_error(
            f"{name} is a file, not a server in this workspace", f"start it with --command 'python3 {name}'"
        )
    _check_words(name, policy, foreign=bool(cases or env or header or allow_calls))
    if write_cases is not None and write_cases.exists():
        output.usage_error(f"{write_cases} already exists", "give another file to --write-cases")
    limits = _limits(limit or [])
    foreign = {"examples": cases, "environ": _variables(env or [], url), "allow_calls": allow_calls}
    foreign["headers"] = _headers(header or [], url)
    oauth = _oauth(url, oauth_client_id, oauth_client_secret_env, oauth_issuer, oauth_scope or [])
    destinations = _destinations(format_ or [], outputs or [], as_json=as_json)
    report = asyncio.run(_examine(name, command, url, foreign, oauth, timeout=timeout, limits=limits))
    _write_reports(report, destinations)
    if write_cases is not None:
        _write_file(write_cases, json.dumps(report.proposed_cases, indent=2, ensure_ascii=False) + "\n")
    if name:
        _report_start_failure(report)
    if report.verdict == "not shown" and not name and policy != "promotion":
        raise typer.Exit(Exit.INCOMPLETE)
    if not report.passed:
        raise typer.Exit(Exit.NEGATIVE)


def _check_words(name: str, policy: str, *, foreign: bool) -> None:
    if policy not in _POLICIES:
        output.usage_error(f"unknown policy {policy!r}", f"--policy {' or --policy '.join(_POLICIES)}")
    if name and foreign:
        output.usage_error(
            "--cases, --env, --header and --allow-calls cannot be used with a server in this workspace",
            "set the cases and variables of a workspace server in its folder",
        )


def _variables(words: Sequence[str], url: str) -> dict[str, str]:
    if words and url:
        output.usage_error("--env cannot be combined with --url", "use --command instead of --url")
    pairs = {
        name: value if equals else os.environ.get(name) for name, equals, value in (w.partition("=") for w in words)
    }
    found = {name: value for name, value in pairs.items() if name and value is not None}
    if lost := [name for name in pairs if name not in found]:
        output.usage_error(f"--env {lost[0]!r} has no value in this shell", "--env API_URL=http://127.0.0.1:8000")
    return found


def _headers(words: Sequence[str], url: str) -> dict[str, str]:
    if words and not url:
        output.usage_error("--header needs --url", "use --env for the credentials of a command")
    pairs = [word.partition("=") for word in words]
    if lost := ["".join(pair) for pair in pairs if not all(pair)]:
        output.usage_error(f"--header takes NAME=VALUE, not {lost[0]!r}", "--header 'Authorization=Bearer TOKEN'")
    return {name: value for name, _, value in pairs}


def _oauth(url: str, client_id: str, secret_env: str, issuer: str, scopes: Sequence[str]) -> OAuth | None:
    """Return the OAuth client that the options describe, or None if there are no such options."""
    if not (client_id or secret_env or issuer or scopes):
        return None
    from mcpfactory_runtime.client.oauth import OAuth

    if not (url and client_id and secret_env and issuer):
        output.usage_error(
            "OAuth needs --url, --oauth-client-id, --oauth-client-secret-env and --oauth-issuer",
            "--oauth-client-id ci --oauth-client-secret-env CI_SECRET --oauth-issuer https://login.example.com",
        )
    secret = os.environ.get(secret_env)
    if not secret:
        output.usage_error(f"--oauth-client-secret-env: {secret_env!r} is not set", f"export {secret_env}=SECRET")
    hosts = [urlsplit(issuer).hostname or ""]  # the user permits this host, also on a private network
    return OAuth(client_id=client_id, client_secret=secret, issuer=issuer, private_hosts=hosts, scopes=scopes)


def _explain(name: str, *, as_json: bool) -> None:
    from mcpfactory_pipeline.checks.rules import explain_rule, find_rule, rule_to_json

    rule = find_rule(name)
    if as_json:
        output.data(rule_to_json(rule))
    else:
        output.print_untrusted_text(explain_rule(rule))


def _report_start_failure(report: ValidationReport) -> None:
    """End the command if the server's own code failed at start."""
    from mcpfactory_pipeline.launch.start_command import parse_start_script_error

    starts = [finding for finding in report.findings if finding.rule == "process.starts"]
    failure = next(
        filter(None, (parse_start_script_error(str((one.evidence or {}).get("stderr", ""))) for one in starts)), None
    )
    if failure is not None:
        output.fail(str(failure), failure.hint, Exit.SERVER_ERROR)


def _limits(words: Sequence[str]) -> dict[str, float]:
    from mcpfactory_pipeline.plan.gates import COST_GATES

    found: dict[str, float] = {}
    for word in words:
        name, _, number = word.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = -1
        if name not in COST_GATES or not 0 <= found[name] < float("inf"):
            output.usage_error(
                f"--limit {word} is invalid: give one of {', '.join(COST_GATES)} with a number",
                "--limit max_start_ms=500",
            )
    return found


async def _examine(*words: Any, **options: Any) -> ValidationReport:
    """Return the report of `_judge`, and end all processes that the check started."""
    from mcpfactory_pipeline.isolation.processes import adopt_orphans, descendants, end_descendants

    ours = descendants(os.getpid())
    adopt_orphans()
    try:
        return await _judge(*words, **options)
    finally:
        await asyncio.to_thread(end_descendants, ours)


async def _judge(
    name: str, command: str, url: str, foreign: dict[str, Any], oauth: OAuth | None, *, timeout: float, **options: Any
) -> ValidationReport:
    from mcpfactory_pipeline.checks.exchange import ValidationTarget
    from mcpfactory_pipeline.checks.named_servers import with_named_location
    from mcpfactory_pipeline.checks.source_validation import validate_source
    from mcpfactory_pipeline.checks.validation import validate
    from mcpfactory_pipeline.delivery.clients.client_profiles import CLIENTS

    if name:
        return await validate_source(selected_workspace(), name, timeout=timeout, **options)
    if oauth is not None:
        from mcpfactory_pipeline.checks.access_token import request_access_token

        token = await request_access_token(url, oauth, seconds=timeout)
        foreign["headers"]["Authorization"] = f"Bearer {token}"
    target = ValidationTarget(command=_words(command) if command else None, url=url or None, **foreign, **options)
    configs = [path for client in CLIENTS if client.project for path in client.project.paths]
    return with_named_location(await validate(target, timeout=timeout), target, Path.cwd(), configs)


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        output.usage_error(
            f"--command {command!r} is not a valid command line: {str(error).lower()}",
            "close every quote: --command 'python -m my_server --name \"two words\"'",
        )


def _destinations(formats: Sequence[str], outputs: Sequence[Path], *, as_json: bool) -> _Destinations:
    """Return each format with its destination, where None means stdout."""
    from mcpfactory_pipeline.checks.report_formats import FORMATS as KNOWN
    from mcpfactory_pipeline.checks.report_formats import report_format_of

    if unknown := [name for name in formats if name not in KNOWN]:
        output.usage_error(f"unknown format {unknown[0]!r}", f"formats: {', '.join(KNOWN)}")
    if not formats:
        named = [(report_format_of(path.name), path) for path in outputs]
        if nameless := [path for name, path in named if name is None]:
            output.usage_error(
                f"cannot derive the format from the file name {nameless[0]}", f"--format {'|'.join(KNOWN)}"
            )
        found: _Destinations = [(name, path) for name, path in named if name is not None]
    elif not outputs and len(formats) == 1 and not as_json:
        return [(formats[0], None)]
    elif len(outputs) == 1 and (len(formats) > 1 or outputs[0].is_dir()):
        found = [(name, outputs[0] / KNOWN[name].file) for name in formats]
    elif len(outputs) == len(formats):
        found = list(zip(formats, outputs, strict=True))
    else:
        output.usage_error(
            f"{len(formats)} formats and {len(outputs)} outputs",
            "give one --output for each --format in the same order, or one folder for all",
        )
    return [*found, ("json" if as_json else "text", None)]


def _write_reports(report: ValidationReport, destinations: _Destinations) -> None:
    from mcpfactory_pipeline.checks.report_formats import FORMATS as KNOWN

    for name, path in destinations:
        text = KNOWN[name].write(report)
        if path is None and name == "text":
            head, _, rest = text.rstrip("\n").partition("\n")
            output.line(output.styled(head, _STYLES[report.verdict]))
            output.print_untrusted_text(rest + "\n")
            continue
        if path is None:
            output.print_document(text.rstrip("\n") + "\n")
            continue
        _write_file(path, text)


def _write_file(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        output.fail(
            f"cannot write {path}: {error.strerror}",
            "give a file in a folder that you can write to",
            Exit.SYSTEM_ERROR,
        )
    output.note(f"wrote {path}")
