from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, Name, selected_workspace
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks.declared_tests import DeclaredTestOutcome
    from mcpfactory_pipeline.workspace.workspace import WorkspaceServer


def run_declared(
    name: Name,
    record: Annotated[
        str, typer.Option(metavar="URL", help="Call the API at this URL, and record responses without secrets")
    ] = "",
    live: Annotated[
        bool, typer.Option("--live", help="Call read-only tools with the real API, and record nothing")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Replace the stored snapshots with the current tool results")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the declared tests of a server.

    The tests are in tests/*.yaml and run against recordings, or against the API with --record or --live.
    """
    from mcpfactory_pipeline.checks.call_plan import api_variables
    from mcpfactory_pipeline.checks.declared_tests import DeclaredTestSetup, read_declared_tests, run_declared_tests
    from mcpfactory_pipeline.launch.start_command import server_command, server_environ
    from mcpfactory_pipeline.workspace.api_addresses import refuse_shared_in_workspace

    if record and live:
        output.usage_error("--record and --live cannot be combined", "mcpfactory test NAME --live")
    workspace = selected_workspace()
    server = workspace.server(name)
    if live:
        refuse_shared_in_workspace(workspace, server, os.environ)
    tests = read_declared_tests(server.folder)
    if not tests:
        output.fail(
            f"{name} has no declared tests",
            f"write servers/{name}/tests/NAME.yaml: docs/how-to/declare-tests.md",
            Exit.NOT_FOUND,
        )
    environ = server_environ(server)
    secrets = {one: environ[one] for one in _secret_names(server) if environ.get(one)}
    if not (record or live):
        environ |= {**dict.fromkeys(_secret_names(server), "dummy"), "MCPFACTORY_DEMO": "1"}
        secrets = {}
    environ |= {"MCPFACTORY_PROFILE": "full", "MCPFACTORY_MODE": "full", "MCPFACTORY_DIALECT": "standard"}
    api = api_variables(server.folder)
    setup = DeclaredTestSetup(server_command(server), environ, secrets=secrets, api=api)
    mode = "record" if record else "live" if live else "replay"
    found = asyncio.run(run_declared_tests(tests, setup, mode=mode, upstream=record, update=update))  # type: ignore[arg-type] # `mode` is one of the permitted values
    if as_json:
        output.data([one.to_json() for one in found])
    else:
        _print_outcomes(found)
    if any(one.faults for one in found) or all(one.skipped for one in found):
        raise typer.Exit(Exit.NEGATIVE)


def _print_outcomes(found: Sequence[DeclaredTestOutcome]) -> None:
    for one in found:
        word, style = ("failed", "bad") if one.faults else ("skipped", "warn") if one.skipped else ("passed", "good")
        output.line(f"{output.styled(word.ljust(8), style)} {one.test.file.name}: {one.test.name}")
        for reason in (*one.faults, *filter(None, [one.skipped])):
            output.line(f"         {reason}")
    bad, skipped = sum(bool(one.faults) for one in found), sum(bool(one.skipped) for one in found)
    output.line(f"{len(found) - bad - skipped} passed, {bad} failed, {skipped} skipped")


def _secret_names(server: WorkspaceServer) -> list[str]:
    from mcpfactory_pipeline.checks.call_plan import required_variables

    return [name for name, secret in required_variables(server.folder).items() if secret]
