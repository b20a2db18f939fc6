"""Table of all pages with paths, views and parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.dashboard.actions import possible_actions
from mcpfactory_pipeline.dashboard.board import GROUPS, SORTS, BoardPage, GraphPage, board, graph_page
from mcpfactory_pipeline.dashboard.decision import DecisionPage, candidate_to_decide, decidable_channels, decision_page
from mcpfactory_pipeline.dashboard.decision_log import (
    DECISIONS,
    DecisionLogPage,
    RecordedDecision,
    decision_log_page,
    recorded_decisions,
)
from mcpfactory_pipeline.dashboard.facts import STATUSES, LogFacts, ServerDetail, StoredCandidate
from mcpfactory_pipeline.dashboard.inbox import InboxPage, inbox
from mcpfactory_pipeline.dashboard.runs import RunPage, RunRow, RunsPage, run_page, run_rows, runs_page
from mcpfactory_pipeline.dashboard.server_page import ServerPage, ToolsPage, server_page, tools_page
from mcpfactory_pipeline.dashboard.workspace_files import LogPage, log_page, open_stage_log
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader
from mcpfactory_pipeline.views.inbox import KINDS

_Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PageParameter:
    """A parameter of a page."""

    name: str
    about: str
    within: str = "query"
    values: tuple[str, ...] = ()
    number: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A kind of page. `view` builds one page, and `instances` yields the path parameters of all exported pages."""

    name: str
    path: str
    title: str
    about: str
    type: type
    view: Callable[[WorkspaceReader, _Values, _Values], Any]
    parameters: tuple[PageParameter, ...] = ()
    instances: Callable[[WorkspaceReader, Sequence[str]], Iterator[dict[str, str]]] = lambda _reader, _names: iter(
        ({},)
    )

    @property
    def template(self) -> str:
        """Return the file name in templates/."""
        return f"{self.name}.html"


def path_of(page: Page, values: _Values) -> str:
    """Return the path of a page for the parameter values."""
    path = page.path
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def _servers(_reader: WorkspaceReader, names: Sequence[str]) -> Iterator[dict[str, str]]:
    yield from ({"name": name} for name in names)


def _decidable(reader: WorkspaceReader, names: Sequence[str]) -> Iterator[dict[str, str]]:
    for values in _servers(reader, names):
        for channel in decidable_channels(reader.server(values["name"])):
            yield {**values, "channel": channel}


def candidate_decision_page(
    reader: WorkspaceReader, detail: ServerDetail, channel: str, candidate: str = ""
) -> DecisionPage:
    """Return the decision page of a server's candidate."""
    if broken := detail.facts.row.get("problem"):
        raise StateError(broken["message"], hint=broken["hint"])
    offered = detail.state.offered(channel)
    chosen, name = candidate or candidate_to_decide(detail, channel), detail.facts.name
    before, after = (reader.stored_candidate(name, one) if one else StoredCandidate() for one in (offered, chosen))
    validator = cache(lambda: reader.suggestion_validator(name))
    return decision_page(
        detail, channel, before, after, candidate=chosen, advise=lambda it: validator().replace_refused_command(it)
    )


def offered_actions(reader: WorkspaceReader, detail: ServerDetail) -> dict[str, tuple[Mapping[str, str], ...]]:
    """Return the available actions of a server, with the channels or stages of each action."""
    validator = cache(lambda: reader.suggestion_validator(detail.facts.name))
    return possible_actions(detail, lambda command: validator().refusal(command) is None)


def _server_page(reader: WorkspaceReader, detail: ServerDetail) -> ServerPage:
    return server_page(detail, offered_actions(reader, detail))


def stage_log_page(facts: LogFacts, query: _Values) -> LogPage:
    """Return a page of a log."""
    with open_stage_log(facts) as stream:
        return log_page(facts, stream, query=query.get("q", ""), page=query.get("page", ""))


def _rows(reader: WorkspaceReader) -> tuple[RunRow, ...]:
    at_work = reader.running_stages_now()
    while True:
        rows = reader.cached_from_histories("runs", partial(run_rows, at_work=at_work), also=at_work)
        now = reader.running_stages_now()
        if now <= at_work:  # no stage started during the read; a stage that ended counts as running
            return rows
        at_work = now  # read again: a stage that started during the read would appear to have crashed


def all_decisions(reader: WorkspaceReader) -> tuple[RecordedDecision, ...]:
    """Return the decisions of all servers, newest first."""
    return reader.cached_from_histories("decisions", recorded_decisions)


def _runs(reader: WorkspaceReader, _names: Sequence[str]) -> Iterator[dict[str, str]]:
    found = {str(event["run"]) for events in reader.histories().values() for event in events if event.get("run")}
    yield from ({"run": run} for run in sorted(found))


def _parts(reader: WorkspaceReader, _names: Sequence[str]) -> Iterator[dict[str, str]]:
    for name, events in reader.histories().items():  # includes deleted servers
        for run in dict.fromkeys(str(event["run"]) for event in events if event.get("run")):
            yield {"run": run, "name": name}


def _named(query: _Values, *names: str) -> dict[str, str]:
    return {name: query.get(name, "") for name in names}


_QUERY: Final = PageParameter("q", "Text in the name of a server")
_PAGE: Final = PageParameter("page", "Page of the list, counted from 1", number=True)
_NAME: Final = PageParameter("name", "The server", within="path")
_RUN: Final = PageParameter("run", "The id of the run, as in events and in the list of runs", within="path")

PAGES: Final[tuple[Page, ...]] = (
    Page(
        "inbox", "/", "Inbox", "Pending items with responsible person, age and next command", InboxPage,
        lambda reader, _path, query: inbox(reader.workspace(), query=query.get("q", ""), whose=query.get("for", ""), **_named(query, "kind", "page")),
        (
            _QUERY, PageParameter("kind", "Only items of this kind", values=KINDS),
            PageParameter("for", "Only items for this person, or for anybody"), _PAGE,
        ),
    ),
    Page(
        "board", "/board/", "Board", "All servers with stages and channels; those that need a person first", BoardPage,
        lambda reader, _path, query: board(
            reader.workspace(), query=query.get("q", ""), **_named(query, "status", "sort", "group", "page")
        ),
        (
            _QUERY,
            PageParameter("status", "Only servers with this status", values=tuple(STATUSES)),
            PageParameter("sort", "Sort key; with - in descending order", values=tuple(sign + key for key in SORTS for sign in ("", "-"))),
            PageParameter("group", "Criterion for groups of servers", values=tuple(GROUPS)),
            _PAGE,
        ),
    ),
    Page(
        "graph", "/graph/", "Pipeline", "Graph of stages, gates and channels, with the candidates", GraphPage,
        lambda reader, _path, query: graph_page(reader.workspace(), query=query.get("q", "")),
        (_QUERY,),
    ),
    Page(
        "decisions", "/decisions/", "Decisions", "Decisions of all servers with person, reason and time", DecisionLogPage,
        lambda reader, _path, query: decision_log_page(
            reader.workspace_name(), all_decisions(reader), query=query.get("q", ""), **_named(query, "who", "what", "page")
        ),
        (
            PageParameter("q", "Text in the name of a server, or the beginning of a candidate"),
            PageParameter("who", "Only decisions of this person"),
            PageParameter("what", "Only decisions of this kind", values=DECISIONS),
            _PAGE,
        ),
    ),
    Page(
        "server", "/servers/{name}/", "Server", "Everything about one server", ServerPage,
        lambda reader, path, _query: _server_page(reader, reader.server(path["name"])),
        (_NAME,), _servers,
    ),
    Page(
        "tools", "/servers/{name}/tools/", "Tools", "The tools of one server with the schemas that models see", ToolsPage,
        lambda reader, path, query: tools_page(reader.server(path["name"]), page=query.get("page", "")),
        (_NAME, _PAGE), _servers,
    ),
    Page(
        "decision", "/servers/{name}/decide/{channel}/", "Decision",
        "A candidate compared with the channel's offer: tools, findings, tests, waivers, figures", DecisionPage,
        lambda reader, path, _query: candidate_decision_page(reader, reader.server(path["name"]), path["channel"]),
        (_NAME, PageParameter("channel", "The channel", within="path")), _decidable,
    ),
    Page(
        "log", "/servers/{name}/logs/{stage}/", "Log", "Output of the last execution of a stage", LogPage,
        lambda reader, path, query: stage_log_page(reader.log(path["name"], path["stage"]), query),
        (
            _NAME, PageParameter("stage", "The stage", within="path"),
            PageParameter("q", "Only lines that contain this text"), _PAGE,
        ),
        lambda _reader, _names: iter(()),
    ),
    Page(
        "runs", "/runs/", "Runs", "Every run of the pipeline, the newest first", RunsPage,
        lambda reader, _path, query: runs_page(reader.workspace_name(), _rows(reader), page=query.get("page", "")),
        (_PAGE,),
    ),
    Page(
        "run", "/runs/{run}/", "Run", "One run: start, duration, reason and outcome of each step", RunPage,
        lambda reader, path, query: run_page(reader.run(path["run"]), page=query.get("page", "")),
        (_RUN, _PAGE), _runs,
    ),
    Page(
        "server_run", "/runs/{run}/{name}/", "Run of a server", "Steps of one run for one server, with logs", RunPage,
        lambda reader, path, _query: run_page(reader.run(path["run"], path["name"]), server=path["name"]),
        (_RUN, _NAME), _parts,
    ),
)  # fmt: skip
