from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from mcpfactory_pipeline.channels.contract import compare_source_contract
from mcpfactory_pipeline.run.run import plan_servers
from mcpfactory_pipeline.serve.results import (
    ConfusedTools,
    Examination,
    FindingList,
    FindingRow,
    InboxResult,
    PlanResult,
    ServerList,
    ServerRow,
    SourceDiff,
    StageLog,
    StatusList,
)
from mcpfactory_pipeline.serve.workspace_access import WorkspaceAccess, run_in_own_loop
from mcpfactory_pipeline.views.inbox import read_inbox
from mcpfactory_pipeline.views.status import list_servers, read_candidate_report, read_log, status
from mcpfactory_runtime import Server

_READS: Final = {"readOnlyHint": True, "openWorldHint": False}
_EVIDENCE: Final = 4_000  # maximum characters of a finding's evidence
_LOG: Final = 20_000  # maximum characters of a log to show, from its end

SomeServers = Annotated[tuple[str, ...], Field(examples=[["bookshop"]])]
OneServer = Annotated[str, Field(examples=["bookshop"])]


class ReadTools:
    """Read-only tools for one workspace."""

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def register(self, server: Server) -> None:
        """Register the tools."""
        looks: dict[str, Callable[..., Any]] = {
            "List servers": self.list_servers,
            "Pending work": self.inbox,
            "Status of servers": self.status,
            "Plan of a run": self.plan,
            "Findings of a candidate": self.findings,
            "Log of a stage": self.log,
        }
        for title, tool in looks.items():
            server.tool(title=title, annotations=_READS)(tool)
        abroad = {**_READS, "openWorldHint": True}  # for tools that start servers, because servers may use the network
        server.tool(title="Changes for callers", annotations=abroad)(self.diff)
        server.tool(title="Tools that models confuse", annotations=abroad)(self.confused_tools)
        writes = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": True}
        server.tool(title="Refresh the inbox", annotations=writes)(self.refresh_inbox)
        server.tool(title="Examine a server's sources", annotations=writes)(self.validate)

    async def list_servers(self) -> ServerList:
        """List the servers of the workspace: template, source of the API document, number of tools."""
        return ServerList([ServerRow(**row) for row in await self._access.read(list_servers)])

    async def status(self, servers: SomeServers = ()) -> StatusList:
        """Show the status of servers: each stage with outcome and reasons, candidate, channels, holds, drift.

        Args:
            servers: names of servers; empty means all.
        """
        return StatusList(await self._access.read(status, servers or None))

    async def plan(self, servers: SomeServers = (), until: str = "", force: bool = False) -> PlanResult:
        """List the stages that a run would execute, with reasons, without running them.

        Args:
            servers: names of servers; empty means all.
            until: the last stage to plan; empty for all.
            force: also plan stages that are up to date.
        """
        steps = await self._access.read(plan_servers, servers or None, until=until or None, force=force)
        return PlanResult(sum(step.verdict == "run" for step in steps), steps)

    async def inbox(self, servers: SomeServers = ()) -> InboxResult:
        """List pending work, the most blocking first, each with the next command.

        Args:
            servers: names of servers; empty means all.
        """
        return InboxResult(await self._access.read(read_inbox, servers or None))

    async def refresh_inbox(self, servers: SomeServers = ()) -> InboxResult:
        """Check the origins of servers (API documents, projects, packages), then list pending work as `inbox` does.

        If an adopted server differs from its adopted version, the difference is recorded. The recorded difference stops
        the server until a person has reviewed the difference.

        Args:
            servers: names of servers; empty means all.
        """
        return InboxResult(await self._access.read(read_inbox, servers or None, refresh=True))

    async def findings(
        self, server: OneServer, candidate: str = "", rule: str = "", limit: Annotated[int, Field(ge=1, le=200)] = 20
    ) -> FindingList:
        """Show the findings of `validate` in a candidate, gates first, each with the exchange that proves it.

        Args:
            server: name of the server.
            candidate: prefix of a candidate's ID; empty for the newest candidate.
            rule: only findings of this rule; empty for all.
            limit: maximum number of findings.
        """
        chosen, version, text = await self._access.read(read_candidate_report, server, candidate)
        report = json.loads(text)
        found = [one for one in report["findings"] if not rule or one["rule"] == rule]
        return FindingList(
            server,
            chosen,
            version,
            report["score"],
            report["passed"],
            len(found),
            _rows(found, limit),
            report["not_checked"],
        )

    async def log(self, server: OneServer, stage: Annotated[str, Field(examples=["test"])]) -> StageLog:
        """Show the output of a stage's last run, for example to find out why it failed.

        Args:
            server: name of the server.
            stage: generate, build, test, validate, the first channel, or a stage of the workspace.
        """
        text = await self._access.read(read_log, server, stage)
        return StageLog(text[-_LOG:], len(text) > _LOG)

    async def diff(self, server: OneServer, against: str = "") -> SourceDiff:
        """Compare the tools of a server's sources with the tools that callers use, and propose the required version.

        Args:
            server: name of the server.
            against: a channel, or a prefix of a candidate's ID; empty for the last channel that offers the server.
        """
        found = await run_in_own_loop(lambda: compare_source_contract(self._access.workspace(), server, against))
        return SourceDiff(server, **found.to_json())

    async def confused_tools(self, server: OneServer) -> ConfusedTools:
        """List the tools that models confuse in a server, with both descriptions, the questions, and advice.

        No model is asked: the reports of `mcpfactory evaluate SERVER --model … --report` are read. Rewrite a
        description, then make a new report.

        Args:
            server: name of the server.
        """
        from mcpfactory_pipeline.checks.evaluation.confusable_tools import find_confused_pairs  # noqa: PLC0415 - heavy
        from mcpfactory_pipeline.checks.evaluation.evaluation_reports import read_model_reports  # noqa: PLC0415 - heavy
        from mcpfactory_pipeline.checks.evaluation.offered_tools import read_server_tools  # noqa: PLC0415 - heavy

        known = self._access.workspace().server(server)
        reports = read_model_reports(known.folder)
        tools = await run_in_own_loop(lambda: read_server_tools(known))
        pairs = [one.to_json() for one in find_confused_pairs(tools, reports)]
        return ConfusedTools(server, [one.model for one in reports], pairs)

    async def validate(self, server: OneServer) -> Examination:
        """Examine a server's current sources without a run: start it, call its tools, and apply the rules.

        The tools of a server made from a document call a stub of its API. The examination takes up to a minute and
        records nothing.

        Args:
            server: name of the server.
        """
        from mcpfactory_pipeline.checks.source_validation import validate_source  # noqa: PLC0415 - loads all rules

        report = await run_in_own_loop(lambda: validate_source(self._access.workspace(), server))
        rows = _rows([finding.to_json() for finding in report.findings], 50)
        return Examination(server, report.score, report.passed, list(report.failed_gates), rows)


def _rows(findings: Iterable[Mapping[str, Any]], limit: int) -> list[FindingRow]:
    worst = sorted(findings, key=lambda one: (not one["gate"], -one["severity"]))[:limit]
    parts = ({"evidence": _short(one.get("evidence")), "follows": tuple(one.get("follows", ()))} for one in worst)
    return [FindingRow(**{**one, **shown}) for one, shown in zip(worst, parts, strict=True)]


def _short(evidence: Any) -> Any:
    text = json.dumps(evidence, ensure_ascii=False)
    return evidence if len(text) <= _EVIDENCE else f"{text[:_EVIDENCE]}… the report has all of it"
