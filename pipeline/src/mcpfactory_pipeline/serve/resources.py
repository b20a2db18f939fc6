from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from mcpfactory_pipeline.base.errors import NotFoundError, PromotionError
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.serve.workspace_access import WorkspaceAccess
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.views.inbox import read_inbox
from mcpfactory_pipeline.views.status import history, read_candidate_report, status
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime import Server


class FactoryResources:
    """Resources of one workspace, and completion of the names in their URIs."""

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def register(self, server: Server) -> None:
        """Register the resources."""
        for uri, name, function in (
            ("factory://inbox", "inbox", self.inbox),
            ("factory://status", "status", self.status),
            ("factory://servers/{server}/status", "status of a server", self.server_status),
            ("factory://servers/{server}/report.json", "report of a server", self.report),
            ("factory://servers/{server}/history.json", "history of a server", self.history),
        ):
            server.resource(uri, name=name, mime_type="application/json")(function)
        server.completion(self.complete)

    async def inbox(self) -> list[dict[str, Any]]:
        """Return pending work, the most blocking first, each with the next command."""
        return [item.to_json() for item in await self._read(read_inbox)]

    async def status(self) -> Any:
        """Return the status of every server, in the shape of `mcpfactory pipeline status --json`."""
        return await self._read(status)

    async def server_status(self, server: str) -> Any:
        """Return the status of one server."""
        found = await self._read(status, [server])
        return found and found[0]

    async def report(self, server: str) -> Any:
        """Return the report of `validate` on the newest candidate of a server: every finding with its proof."""
        found = await self._read(read_candidate_report, server)
        return found and json.loads(found[2])

    async def history(self, server: str) -> Any:
        """Return all events of a server, oldest first: who did what, when and why."""
        return await self._read(history, server)

    async def complete(self, ref: Any, argument: Any) -> list[str]:
        """Return the names of servers, stages and channels that begin with the typed text."""
        kinds: dict[str, Callable[[Workspace], list[str]]] = {
            "server": lambda workspace: [server.name for server in workspace.servers()],
            "stage": lambda workspace: [stage.name for stage in workspace_stages(workspace)],
            "channel": lambda workspace: [channel.name for channel in read_channels(workspace)],
        }
        names = await self._read(kinds[argument.name]) if argument.name in kinds else []
        return [name for name in names if name.startswith(argument.value)]

    async def _read(self, function: Any, *arguments: Any, **options: Any) -> Any:
        def read(workspace: Workspace) -> Any:
            try:
                return function(workspace, *arguments, **options)
            except (NotFoundError, PromotionError):  # the promotion error means that no candidate exists yet
                return None

        return await self._access.read(read)


_MANNERS: Final = """
Rules:
- Read before you act: `status` and `inbox` cost nothing.
- `approve`, `promote`, `rollback`, `hold` and `reject` ask a person. In `reason`, write one sentence about what you checked.
- A refusal says what is missing. If it names a setting of mcpfactory.toml, do not change the setting: tell the person.
- Never waive a finding, lower a gate or edit pipeline/state and pipeline/history.
"""


def register(server: Server) -> None:
    """Register the prompts."""
    for title, prompt in (
        ("Bring a server to production", bring_to_production),
        ("Look into a run that failed", look_into_failed_run),
        ("Update a server after its API changed", update_after_api_change),
    ):
        server.prompt(title=title)(prompt)


def bring_to_production(server: str, document: str = "") -> str:
    """Bring a server to production, from an API document or an existing server, with approvals by people.

    Args:
        server: the server's name.
        document: URL or path of the server's API document, if the server does not exist yet.
    """
    first = (
        f'1. `new` with sources=["{document}"], name="{server}". Read the problems in its result: omitted parts of the API, with reasons.'
        if document
        else f'1. `status` with servers=["{server}"]: which stages are due, what is in which channel.'
    )
    return f"""Bring the server {server} to production.

{first}
2. `run` with servers=["{server}"]. It takes minutes and reports each step. If a stage fails, `log` and `findings` show why. Fix
   the cause in servers/{server}/, and run again. Do not edit files in `_generated/`.
3. `findings` of {server}: gates first. A candidate with a finding at a gate is not promoted.
4. `diff` of {server}: the changes for callers. If a change breaks callers, set the proposed version, and run again.
5. `inbox` of {server} shows what is still missing for production: approvals, time in staging, gates.
6. `approve`, then `promote`, each with your reason. Report: version, candidate, score, changes for callers, who approved.
{_MANNERS}"""


def look_into_failed_run(server: str) -> str:
    """Find out why a run of a server did not pass, and how to fix it.

    Args:
        server: the server's name.
    """
    return f"""Find out why the last run of {server} did not pass.

1. `status` with servers=["{server}"]: the first stage whose outcome is not `passed` is the cause; it blocks later stages.
2. By outcome of this stage:
   - `failed`: the server has an error. Read `log` of the stage; for `validate`, also read `findings` with their evidence.
   - `errored`, `interrupted`: a tool or the pipeline failed. Read `log`, and `run` again once. If it fails again, tell the person.
   - `inconclusive`: a channel was held, or the state changed during the run. Read `inbox`.
3. Before you change a file in servers/{server}/, report the error, its place (file, tool or rule), and your planned fix.
4. After a change: `plan` (stages to run), `run`, and `findings` again.
{_MANNERS}"""


def update_after_api_change(server: str, document: str = "") -> str:
    """Update a server to a changed API document, keep people's edits, and report the changes for callers.

    Args:
        server: the server's name.
        document: URL or path of the new document; by default, its original location.
    """
    where = f', sources=["{document}"]' if document else ""
    return f"""The API behind {server} changed: bring the server up to date.

1. `update` with server="{server}"{where}, dry_run=true: the changes for callers, and files in conflict.
2. If a change breaks callers, tell the person which tools it affects, and continue only if they agree.
3. `update` without dry_run. Files in conflict have conflict markers: resolve each conflict, and remove the markers.
4. `run` with servers=["{server}"], then `diff` of {server}: write the proposed version, and `run` again.
5. Report: added, removed and changed tools, the version, and the score before and after (`findings`).
{_MANNERS}"""
