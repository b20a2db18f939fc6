"""Pages of one server and its tools."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from mcpfactory_codegen.servers.overview import overview, overview_rows
from mcpfactory_codegen.text import estimate_tokens
from mcpfactory_pipeline.base.ids import format_time
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.dashboard.board import StageCell, describe_hold, stage_cells
from mcpfactory_pipeline.dashboard.candidates import (
    CandidateView,
    DecisionView,
    DisplayedFact,
    FindingView,
    candidate_views,
    finding_views,
    format_summary_facts,
)
from mcpfactory_pipeline.dashboard.decision import candidate_to_decide, decidable_channels, retirement_blocks
from mcpfactory_pipeline.dashboard.facts import (
    STATUSES,
    Pager,
    ServerDetail,
    ShownStatus,
    outcome_status,
    overall_status,
    paginate,
    shorten,
)
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.timeline import actor_of, in_channel_since
from mcpfactory_pipeline.views.graph import GraphPlace, describe_channel_limits, server_graph
from mcpfactory_pipeline.workspace.api_addresses import describe_need
from mcpfactory_pipeline.workspace.coverage import operation_name
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_runtime.schemas.walk import properties_of

_SIZE: Final = 8  # maximum number of tools with schemas per page
_TOOL_TEXT: Final = 2_000  # maximum number of characters of a description


@dataclass(frozen=True, slots=True)
class ToolView:
    """A tool.

    Attributes:
        share: tokens of the tool in percent of the largest tool.
        can_try: True if the dashboard can call the tool. Tools of adopted servers cannot be called.
    """

    name: str
    title: str
    operation: str
    arguments: tuple[str, ...]
    tokens: int
    share: int
    description: str
    hints: tuple[str, ...]
    input: Mapping[str, Any]
    output: Mapping[str, Any]
    can_try: bool


@dataclass(frozen=True, slots=True)
class ToolsPage:
    """Tools of a server with their schemas. `listed` is False if the tools are unknown."""

    workspace: str
    server: str
    listed: bool
    tokens: int
    pager: Pager
    tools: tuple[ToolView, ...]


def tools_page(detail: ServerDetail, *, page: str = "1") -> ToolsPage:
    """Return a page of the server's tools."""
    tools = tool_views(detail)
    shown, pager = paginate(tools, page, _SIZE)
    return ToolsPage(
        detail.facts.workspace, detail.facts.name, bool(tools), sum(tool.tokens for tool in tools), pager, shown
    )


def tool_views(detail: ServerDetail) -> tuple[ToolView, ...]:
    """Return the tools in the server's report. Without a report, return the newest candidate's tools."""
    if not isinstance(detail.report.get("tools"), list):
        named = [tool for tool in detail.contract if isinstance(tool.get("name"), str)]
        counted = [(tool, estimate_tokens(tool)) for tool in named]
        most = max((tokens for _, tokens in counted), default=0) or 1
        own = bool(detail.facts.template)
        return tuple(
            _tool({"name": tool["name"], "tokens": tokens, "arguments": _arguments(tool)}, tool, most, own=own)
            for tool, tokens in counted
        )
    listed = [tool for tool in detail.report["tools"] if isinstance(tool, dict)]
    shown = {tool.get("name"): tool for tool in detail.manifest.get("tools", ()) if isinstance(tool, dict)}
    largest = max((int(tool.get("tokens", 0)) for tool in listed), default=0) or 1
    return tuple(_tool(tool, shown.get(tool.get("name"), {}), largest) for tool in listed)


def _arguments(tool: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {} for name in properties_of(tool.get("inputSchema"))}


def _tool(tool: Mapping[str, Any], shown: Mapping[str, Any], largest: int, *, own: bool = False) -> ToolView:
    operation = tool.get("operation")
    return ToolView(
        name=str(tool.get("name", "")),
        title=str(shown.get("title") or ""),
        operation=operation_name(operation) if isinstance(operation, dict) else "",
        arguments=tuple(
            f"{name} ({bound['in']})" if bound.get("in") else str(name)
            for name, bound in (tool.get("arguments") or {}).items()
        ),
        tokens=int(tool.get("tokens", 0)),
        share=round(100 * int(tool.get("tokens", 0)) / largest),
        description=shorten(str(shown.get("description", "")), _TOOL_TEXT),
        hints=tuple(str(key) for key, value in (shown.get("annotations") or {}).items() if value is True),
        input=shown.get("inputSchema") or {},
        output=shown.get("outputSchema") or {},
        can_try=own or isinstance(operation, dict),
    )


_HISTORY: Final = 30  # maximum number of events; the history file has all events
_TOOLS: Final = 40  # maximum number of tools; a separate page has all tools
_LEFT_OUT: Final = 40  # maximum number of skipped operations
_TEXT: Final = 240  # maximum number of characters of a text in a list
_WHOLE: Final = 4_000  # maximum total number of characters of all full texts on a page
_KINDS: Final = {
    "publish.started": "publish started",
    "stage.started": "started",
    "compacted": "history compacted",
    "stage.finished": "finished",
    "stage.interrupted": "interrupted",
}


@dataclass(frozen=True, slots=True)
class StageView:
    """A stage with its result.

    Attributes:
        verdict: `up-to-date`, `run`, `blocked`, `held` or `waiting`.
        message: message of the last result.
        run: last run that executed the stage.
        last_run: run with the last result while the stage is running again, otherwise "".
    """

    stage: str
    status: ShownStatus
    message: str
    verdict: str
    reasons: tuple[str, ...]
    facts: tuple[DisplayedFact, ...]
    run: str
    last_run: str = ""


@dataclass(frozen=True, slots=True)
class ChannelView:
    """State of a channel.

    Attributes:
        since: time at which the channel began to offer the candidate.
        asks: requirements of the channel.
        waits: message of a pending item.
        next: version of the next candidate, or "".
        earlier: True if a rollback to an earlier candidate is possible.
        rejected: rejections of the next candidate.
    """

    name: str
    version: str
    candidate: str
    since: str
    asks: str
    held: str
    waits: str
    command: str
    next: str
    next_candidate: str
    earlier: bool
    rejected: tuple[DecisionView, ...]
    rejected_version: str


@dataclass(frozen=True, slots=True)
class PendingItemView:
    """A pending item. `value` is the next command, and `log` is the stage whose log shows the error."""

    name: str
    value: str
    log: str


@dataclass(frozen=True, slots=True)
class PublishedView:
    """The published release at a target.

    `behind` describes the channel's release if it differs from the published release.
    """

    target: str
    version: str
    candidate: str
    since: str
    actor: str
    evidence: tuple[DisplayedFact, ...]
    behind: str


@dataclass(frozen=True, slots=True)
class ValidationSummary:
    """Result of the last validation. If the report is not on this machine, some fields are None."""

    score: int | None
    passed: bool | None
    rules_version: int | None
    revisions: tuple[str, ...]
    findings: int


@dataclass(frozen=True, slots=True)
class ToolRow:
    """Short description of a tool, without schemas."""

    name: str
    operation: str
    arguments: tuple[str, ...]
    tokens: int
    share: int


@dataclass(frozen=True, slots=True)
class ApiCoverage:
    """Operations of the API document that became tools. `share` is in percent, rounded down."""

    operations: int
    made: int
    missing: int
    share: int
    left_out_total: int
    left_out: tuple[DisplayedFact, ...]


@dataclass(frozen=True, slots=True)
class OverviewView:
    """Overview of a server: features, tools that are hard for models, and suggested decisions with their commands."""

    facts: tuple[DisplayedFact, ...]
    hard: tuple[str, ...]
    decisions: tuple[DisplayedFact, ...]


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A row of the history. If `detail` is truncated, `whole` has the full text as long as the page has room."""

    at: str
    actor: str
    what: str
    status: ShownStatus | None
    detail: str
    run: str
    whole: str = ""


@dataclass(frozen=True, slots=True)
class ActionLink:
    """A link to an action. `stage` is an approval stage, or ""."""

    name: str
    stage: str = ""


@dataclass(frozen=True, slots=True)
class ServerPage:
    """Page of a server. Long lists are truncated.

    Attributes:
        retired: actor and reason of the retirement, or "".
        older: number of events that the page omits.
    """

    workspace: str
    name: str
    status: ShownStatus
    version: str
    template: str
    source: str
    problem: str
    hint: str
    retired: str
    retired_since: str
    waiting: tuple[PendingItemView, ...]
    stages: tuple[StageView, ...]
    graph: tuple[GraphPlace, ...]
    channels: tuple[ChannelView, ...]
    published: tuple[PublishedView, ...]
    verdict: ValidationSummary
    findings_total: int
    findings: tuple[FindingView, ...]
    not_checked: tuple[DisplayedFact, ...]
    candidates: tuple[CandidateView, ...]
    tools_total: int
    tokens: int
    tools: tuple[ToolRow, ...]
    overview: OverviewView | None
    coverage: ApiCoverage | None
    environment: tuple[DisplayedFact, ...]
    history: tuple[HistoryRow, ...]
    older: int
    actions: tuple[ActionLink, ...]


def _action_links(possible: Mapping[str, tuple[Mapping[str, str], ...]]) -> Iterator[ActionLink]:
    for name, subjects in possible.items():
        stages = [about for about in subjects if "stage" in about]
        if len(stages) < len(subjects):
            yield ActionLink(name)
        if stages:
            yield ActionLink(name, stages[0]["stage"])


def server_page(
    detail: ServerDetail, possible: Mapping[str, tuple[Mapping[str, str], ...]] = MappingProxyType({})
) -> ServerPage:
    """Return the page of a server."""
    facts, row, report = detail.facts, detail.facts.row, detail.report
    cells, problem, tools = stage_cells(row), row.get("problem") or {}, tool_views(detail)
    findings = finding_views(detail.validation.get("findings", ()))
    return ServerPage(
        workspace=facts.workspace,
        name=facts.name,
        status=overall_status(row, [cell.status for cell in cells]),
        version=str(row.get("version") or ""),
        template=facts.template,
        source=facts.source,
        problem=str(problem.get("message", "")),
        hint=str(problem.get("hint", "")),
        retired=describe_hold(row["retired"]) if row.get("retired") else "",
        retired_since="".join(one.since for one in retirement_blocks(detail)),
        waiting=tuple(
            PendingItemView(item.message, item.command, item.about if item.about in facts.logs else "")
            for item in facts.items
        ),
        stages=tuple(_stage(cell, row["stages"][cell.stage], detail.history) for cell in cells),
        graph=server_graph(row, facts.items, detail.stages, detail.channels),
        channels=tuple(_channels(detail, [about["channel"] for about in possible.get("rollback", ())])),
        published=tuple(_published(detail)),
        verdict=_verdict(detail.validation),
        findings_total=len(detail.validation.get("findings", ())),
        findings=findings,
        not_checked=tuple(
            DisplayedFact(str(item.get("rule")), str(item.get("reason")))
            for item in detail.validation.get("not_checked", ())
        ),
        candidates=candidate_views(detail.state, detail.history),
        tools_total=len(tools),
        tokens=sum(tool.tokens for tool in tools),
        tools=tuple(
            ToolRow(one.name, one.operation, one.arguments[:12], one.tokens, one.share) for one in tools[:_TOOLS]
        ),
        overview=_overview(facts.name, report),
        coverage=_coverage(row.get("coverage"), report),
        environment=tuple(_variable(report, one) for one in report.get("environment", ())),
        history=tuple(_history(detail)),
        older=max(len(detail.history) - _HISTORY, 0),
        actions=tuple(_action_links(possible)),
    )


def _overview(server: str, report: Mapping[str, Any]) -> OverviewView | None:
    if not isinstance(report.get("tools"), list):
        return None
    view = overview(server, report)
    return OverviewView(
        facts=tuple(DisplayedFact(label, shorten(text, _TEXT)) for label, text in overview_rows(view)),
        hard=tuple(shorten(one.message, _TEXT) for one in view.hard),
        decisions=tuple(DisplayedFact(shorten(one.message, _TEXT), shorten(one.type, _TEXT)) for one in view.decisions),
    )


def _stage(cell: StageCell, stage: Mapping[str, Any], history: Sequence[Event]) -> StageView:
    events = [event for event in history if event.get("stage") == cell.stage and event.get("run")]
    run, verdict = str(events[-1]["run"]) if events else "", str(stage.get("verdict", ""))
    message = shorten(str(stage.get("message", "")), _TEXT)
    if cell.status.key == "running":
        ends = [event for event in events if event["event"] != "stage.started"]
        said = ", ".join(filter(None, [outcome_status(stage.get("outcome")).word, message]))
        last = str(ends[-1]["run"]) if ends else ""
        return StageView(cell.stage, cell.status, f"last time: {said}" if last else "", verdict, (), (), run, last)
    reasons = tuple(shorten(str(reason), _TEXT) for reason in stage.get("reasons", ()))
    return StageView(
        cell.stage, cell.status, message, verdict, reasons, format_summary_facts(stage.get("summary", {})), run
    )


def _channels(detail: ServerDetail, back: Container[str]) -> Iterator[ChannelView]:
    state, rejected, pending = detail.state, detail.facts.row.get("rejected", {}), set(decidable_channels(detail))
    known = {channel.name: channel for channel in detail.channels}
    holds = {name: hold for name, hold in state.holds.items() if name in known}
    said = {one.id: one.decisions for one in candidate_views(detail.state, detail.history)} if rejected else {}
    for name in dict.fromkeys((*known, *sorted(state.channels))):
        offered, following = state.offered(name), candidate_to_decide(detail, name) if name in pending else ""
        since = in_channel_since(detail.history, name, offered) if offered else None
        due = [item for item in detail.facts.items if item.about == name]
        yield ChannelView(
            name=name,
            version=state.channels[name].version if offered else "",
            candidate=offered,
            since=format_time(since) if since else "",
            asks=_requirements(known[name]) if name in known else "no channel of the workspace any more",
            held=describe_hold(holds[name]) if name in holds else "",
            waits=shorten(due[0].message, _TEXT) if due else "",
            command=due[0].command if due else "",
            next=state.candidates[following].version if following else "",
            next_candidate=following,
            rejected=tuple(
                one
                for one in said.get(str(rejected.get(name, {}).get("candidate")), ())
                if (one.what, one.channel) == ("rejected", name)
            ),
            rejected_version=str(rejected.get(name, {}).get("version", "")),
            earlier=name in back,
        )


def _published(detail: ServerDetail) -> Iterator[PublishedView]:
    state = detail.state
    for target, live in sorted(state.published.items()):
        events = [event for event in detail.history if event["event"] == "published" and event.get("target") == target]
        release = state.channels.get(live.channel)
        promoted = f"{live.channel} offers {release.version if release else 'nothing'}"
        yield PublishedView(
            target=target,
            version=live.version,
            candidate=live.candidate,
            since=str(events[-1]["at"]) if events else "",
            actor=live.actor,
            evidence=tuple(DisplayedFact(name, shorten(value, _TEXT)) for name, value in live.evidence.items()),
            behind="" if state.offered(live.channel) == live.candidate else promoted,
        )


def _requirements(channel: ChannelPolicy) -> str:
    words = describe_channel_limits(channel)
    if channel.approvals:
        words.append(
            pluralize(channel.approvals, "approval")
            + (f" of {', '.join(channel.approvers)}" if channel.approvers else "")
        )
    words = words or ["checks that passed"]
    if channel.operators:
        words.append(f"operators: {', '.join(channel.operators)}")
    return "; ".join(words)


def _verdict(report: Mapping[str, Any]) -> ValidationSummary:
    return ValidationSummary(
        report.get("score"),
        report.get("passed"),
        report.get("rules_version"),
        tuple(map(str, report.get("revisions", ()))),
        len(report.get("findings", ())),
    )


def _coverage(manifest: Mapping[str, Any] | None, report: Mapping[str, Any]) -> ApiCoverage | None:
    """Return the coverage that the stage `generate` recorded. Without a record, return the coverage in the report."""
    if not manifest:
        skipped = {operation_name(one): one.get("reason", "") for one in report.get("skipped", ())}
        made = len({str(tool.get("operation")) for tool in report.get("tools", ())})
        total = made + len(skipped)
        if not total:
            return None
        manifest = {"operations": total, "made": made, "missing": 0, "share": 100 * made // total, "left_out": skipped}
    left_out = manifest.get("left_out", {})
    return ApiCoverage(
        operations=int(manifest.get("operations", 0)),
        made=int(manifest.get("made", 0)),
        missing=int(manifest.get("missing", 0)),
        share=int(manifest.get("share", 0)),
        left_out_total=len(left_out),
        left_out=tuple(
            DisplayedFact(str(name), shorten(str(reason), _TEXT)) for name, reason in list(left_out.items())[:_LEFT_OUT]
        ),
    )


def _variable(report: Mapping[str, Any], one: Mapping[str, Any]) -> DisplayedFact:
    need = describe_need(report, one)
    return DisplayedFact(
        str(one.get("name", "")), ": ".join(filter(None, (need, shorten(str(one.get("description") or ""), _TEXT))))
    )


def _history(detail: ServerDetail) -> Iterator[HistoryRow]:
    """Yield the latest events, newest first."""
    room = _WHOLE
    for event in reversed(detail.history[-_HISTORY:]):
        row = _event(event)
        if len(row.whole) > room:
            row = replace(
                row, whole="", detail=f"{row.detail} (all of it: mcpfactory pipeline history {detail.facts.name})"
            )
        room -= len(row.whole)
        yield row


def _event(event: Event) -> HistoryRow:
    kind = str(event.get("event", ""))
    subject = str(event.get("stage") or event.get("target") or event.get("channel") or "")
    outcome = event.get("outcome")
    interrupted = STATUSES["interrupted"] if kind == "stage.interrupted" else None
    parts = [str(event[key]) for key in ("version", "message", "reason") if event.get(key)]
    parts += ["; ".join(map(str, event["reasons"]))] if event.get("reasons") else []
    text = " · ".join(parts)
    return HistoryRow(
        at=str(event.get("at", "")),
        actor=actor_of(event),
        what=f"{subject} {_KINDS.get(kind, kind)}".strip(),
        status=outcome_status(outcome) if outcome else interrupted,
        detail=shorten(text, _TEXT),
        run=str(event.get("run") or ""),
        whole=text if len(text) > _TEXT else "",
    )
