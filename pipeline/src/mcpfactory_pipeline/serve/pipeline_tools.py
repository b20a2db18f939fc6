"""Tools that work: making servers, updating them, running the pipeline. They move no channel but the one that runs fill."""

from __future__ import annotations

import os
from dataclasses import replace
from threading import Event
from typing import Any, Final, Literal

from mcpfactory_pipeline.base import ids
from mcpfactory_pipeline.base.events import (
    LogLines,
    RunEvent,
    RunStarted,
    ServerTrouble,
    StepFinished,
    StepSkipped,
    StepStarted,
    Waiting,
)
from mcpfactory_pipeline.run.run import RunOutcome, run_pipeline
from mcpfactory_pipeline.serve.access import WorkspaceAccess, agent, in_stoppable_thread
from mcpfactory_pipeline.serve.read_tools import SomeServers
from mcpfactory_pipeline.serve.results import GenerationResult, RunResult, StepRun
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime import Context, Server, ToolError

_WRITES: Final = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": True}
_IDEMPOTENT: Final = {**_WRITES, "idempotentHint": True}


class PipelineTools:
    """The tools, on one workspace."""

    def __init__(self, access: WorkspaceAccess) -> None:
        self._access = access

    def register(self, server: Server) -> None:
        """Offers the tools."""
        server.tool(title="Make a server", annotations=_WRITES)(self.new_server)
        server.tool(title="Update a server", annotations=_IDEMPOTENT)(self.update_server)
        server.tool(title="Run the pipeline", annotations=_IDEMPOTENT, task="optional")(self.run)

    async def new_server(
        self,
        *,
        document: str = "",
        documents: tuple[str, ...] = (),
        template: str = "",
        name: str = "",
        include_tags: tuple[str, ...] = (),
        include_paths: tuple[str, ...] = (),
        include_operations: tuple[str, ...] = (),
        mode: Literal["", "full", "search"] = "",
        strict: bool = False,
        dry_run: bool = False,
    ) -> GenerationResult:
        """Make a server from an OpenAPI document, from several, or from a template. Give exactly one of the three.

        Args:
            document: URL of the document, or its path from the root of the workspace.
            documents: several for one server, each with a label before it: 'stock=https://…/openapi.json'.
            template: name of a template that needs no document, such as minimal.
            name: of the server; made from the document's title by default.
            include_tags: only operations with one of these tags.
            include_paths: only paths like one of these globs.
            include_operations: only these operationIds or 'GET /path'.
            mode: full lists each tool, search has three tools that find, describe and call them.
            strict: make nothing when the document has any problem.
            dry_run: say what would be made, and make nothing.
        """
        from mcpfactory_codegen.select import Selection  # noqa: PLC0415 - as above
        from mcpfactory_codegen.servers.create import create_server  # noqa: PLC0415 - reads documents and templates; for this tool only

        if sum(map(bool, (document, documents, template))) != 1:
            raise ToolError(
                "Give exactly one of document, documents and template.\nhint: document='https://…/openapi.json'"
            )
        selection = Selection(
            include_tags=include_tags,
            include_paths=include_paths,
            include_operations=include_operations,
        )

        def make(_stop: Event) -> dict[str, Any]:
            workspace = self._access.workspace()
            with self._access.reading():
                return create_server(
                    workspace.root / "servers",
                    name=name or None,
                    source=self._access.document(document) if document else self._access.sources(documents) or None,
                    template=self._access.template(template) if template else None,
                    selection=selection,
                    mode=mode,
                    strict=strict,
                    dry_run=dry_run,
                ).to_json(dry_run=dry_run)

        return _generation_result(await in_stoppable_thread(make), dry_run=dry_run)

    async def update_server(self, server: str, document: str = "", dry_run: bool = False) -> GenerationResult:
        """Regenerate a server after its document or template changed: merges edits, reports changes for callers.

        Files in which both sides changed the same lines are listed as conflicts, which a person must resolve.

        Args:
            server: the server's name.
            document: URL or path of the new document; by default its recorded source. For a server with several
                documents, put the label first: 'stock=https://…/openapi.json'. A new label adds a document.
            dry_run: report the changes without making them.
        """
        from mcpfactory_codegen.servers.update import update_server  # noqa: PLC0415 - as in new_server

        def make(_stop: Event) -> dict[str, Any]:
            folder = self._access.workspace().server(server).folder
            source = self._access.sources([document]) if document else None
            with self._access.reading():
                return update_server(folder, source=source, dry_run=dry_run).to_json(dry_run=dry_run)

        return _generation_result(await in_stoppable_thread(make), dry_run=dry_run)

    async def run(self, ctx: Context, servers: SomeServers, until: str = "", force: bool = False) -> RunResult:
        """Run the pending stages: generate, build, test, validate, and into the first channel.

        It takes minutes, and reports each step. A failed stage is not an error of this tool: `findings` and `log`
        return the details. If canceled, the run ends cleanly, and finished results are kept.

        Args:
            ctx: the caller.
            servers: their names; an empty list means all.
            until: stop after this stage; empty for all.
            force: also run stages that are up to date.
        """
        reporter, who = _ProgressReporter(ctx), agent(ctx)

        def work(stop: Event) -> RunOutcome:
            with ids.acting_as(who):
                return run_pipeline(
                    Workspace.find(self._access.root),
                    servers or None,
                    until=until or None,
                    force=force,
                    reporter=reporter,
                    stop=stop,
                )

        outcome = await in_stoppable_thread(work)
        bad = outcome.interrupted or outcome.errored or outcome.failed
        return RunResult(not bad, dict(outcome.servers), reporter.steps, reporter.troubles)


def _generation_result(data: dict[str, Any], *, dry_run: bool) -> GenerationResult:
    from mcpfactory_pipeline.workspace.upstream import api_addresses  # noqa: PLC0415 - as in new_server

    found = api_addresses(data["address"], os.environ, server=data["server"]) if data.get("address") else []
    addresses = ["\nhint: ".join(filter(None, (one.message, one.hint))) for one in found]
    addresses += filter(None, [data.get("moved", "")])
    return GenerationResult(
        data["server"],
        data["path"],
        data["tools"],
        data["operations"],
        dry_run,
        data.get("tokens"),
        data["problems"],
        data.get("changes", []),
        data.get("conflicts", []),
        data.get("files", []),
        addresses,
    )


def add_log(steps: list[StepRun], event: LogLines) -> None:
    """Add a log to its step: servers run in parallel, so the last step may be another server's."""
    for number, step in reversed(list(enumerate(steps))):
        if (step.server, step.stage) == (event.server, event.stage):
            steps[number] = replace(step, log=list(event.lines))
            return


class _ProgressReporter:
    """A reporter that tells the client how far a run is. Events come from several threads, one at a time."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._done, self._total = 0, 0
        self.steps: list[StepRun] = []
        self.troubles: list[str] = []

    def emit(self, event: RunEvent) -> None:
        """Count a beginning and an end of each stage, and keep how it ended."""
        if isinstance(event, RunStarted):
            self._total = 2 * len(event.servers) * len(event.stages)
            self._report(0, f"{len(event.servers)} servers, {len(event.stages)} stages")
        elif isinstance(event, StepStarted):
            self._report(event.attempt == 1, f"{event.server}: {event.stage} ({'; '.join(event.reasons)})")
        elif isinstance(event, StepFinished):
            self.steps.append(StepRun(event.server, event.stage, event.outcome, event.message, event.seconds))
            self._report(1, f"{event.server}: {event.stage} {event.outcome}: {event.message}")
        elif isinstance(event, StepSkipped):
            self._report(2, f"{event.server}: {event.stage} {event.verdict}")
        elif isinstance(event, LogLines):
            add_log(self.steps, event)
        elif isinstance(event, ServerTrouble):
            self.troubles.append(f"{event.server}: {event.message}" + (f"\nhint: {event.hint}" if event.hint else ""))
        elif isinstance(event, Waiting):
            self._report(0, f"{event.server}: another process runs its stages; waiting")

    def _report(self, count: int, message: str) -> None:
        self._done += count
        self._ctx.report_progress(self._done, max(self._total, self._done) or None, message)

    def close(self) -> None:
        """Leave the rest to the answer of the tool."""
