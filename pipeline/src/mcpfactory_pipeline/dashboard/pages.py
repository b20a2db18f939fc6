"""The table of pages: path, view, template and parameters of each. Routes, navigation, export and the OpenAPI document follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.dashboard.board import GROUPS, SORTS, Board, board
from mcpfactory_pipeline.dashboard.compare import Compare, compare_page, pairs
from mcpfactory_pipeline.dashboard.inbox import Inbox, inbox
from mcpfactory_pipeline.dashboard.library import Library
from mcpfactory_pipeline.dashboard.rules import Rules, rules_page
from mcpfactory_pipeline.dashboard.runs import Run, Runs, run_page, runs_page
from mcpfactory_pipeline.dashboard.server import ServerPage, server_page
from mcpfactory_pipeline.dashboard.tools import Tools, tools_page
from mcpfactory_pipeline.dashboard.trends import Trends, trends_page
from mcpfactory_pipeline.dashboard.words import STATUSES
from mcpfactory_pipeline.views.inbox import KINDS

__all__ = ["PAGES", "Page", "Parameter", "path_of"]

_Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a page: in its path, or in its query with the values that it may have."""

    name: str
    about: str
    within: str = "query"
    values: tuple[str, ...] = ()
    number: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One kind of page. `view` makes its view; `instances` gives the path parameters of all such pages, for the export."""

    name: str
    path: str
    title: str
    about: str
    type: type
    view: Callable[[Library, _Values, _Values], Any]
    parameters: tuple[Parameter, ...] = ()
    instances: Callable[[Library], Iterator[dict[str, str]]] = lambda _library: iter(({},))

    @property
    def template(self) -> str:
        """The file in templates/."""
        return f"{self.name}.html"


def path_of(page: Page, values: _Values) -> str:
    """Return the path of one page, with the values of its parameters."""
    path = page.path
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def _servers(library: Library) -> Iterator[dict[str, str]]:
    yield from ({"name": server.name} for server in library.workspace().servers)


def _compared(library: Library) -> Iterator[dict[str, str]]:
    for values in _servers(library):
        for old, new in pairs(library.server(values["name"]).state):
            yield {**values, "old": old, "new": new}


def _runs(library: Library) -> Iterator[dict[str, str]]:
    found = {str(event["run"]) for events in library.histories().values() for event in events if event.get("run")}
    yield from ({"run": run} for run in sorted(found))


def _parts(library: Library) -> Iterator[dict[str, str]]:
    for name, events in library.histories().items():
        for run in dict.fromkeys(str(event["run"]) for event in events if event.get("run")):
            yield {"run": run, "name": name}


_QUERY: Final = Parameter("q", "Words that the name of a server must contain")
_PAGE: Final = Parameter("page", "Which page of the list, counted from 1", number=True)
_NAME: Final = Parameter("name", "The server", within="path")
_RUN: Final = Parameter("run", "The run, by the id that events and the list of runs have", within="path")

PAGES: Final[tuple[Page, ...]] = (
    Page(
        "inbox", "/", "Inbox", "What waits for a person: for whom, since when, and the command that comes next", Inbox,
        lambda library, _path, query: inbox(
            library.workspace(), query=query.get("q", ""), kind=query.get("kind", ""), page=query.get("page", "")
        ),
        (_QUERY, Parameter("kind", "Only things of this kind", values=KINDS), _PAGE),
    ),
    Page(
        "board", "/board/", "Board", "Every server with its stages and channels, what needs a person first", Board,
        lambda library, _path, query: board(
            library.workspace(), query=query.get("q", ""), status=query.get("status", ""), sort=query.get("sort", ""),
            group=query.get("group", ""), page=query.get("page", ""),
        ),
        (
            _QUERY,
            Parameter("status", "Only servers with this status", values=tuple(STATUSES)),
            Parameter("sort", "What comes first; with - the other way round", values=tuple(sign + key for key in SORTS for sign in ("", "-"))),
            Parameter("group", "Groups servers by this", values=tuple(GROUPS)),
            _PAGE,
        ),
    ),
    Page(
        "server", "/servers/{name}/", "Server", "Everything about one server", ServerPage,
        lambda library, path, _query: server_page(library.server(path["name"])),
        (_NAME,), _servers,
    ),
    Page(
        "tools", "/servers/{name}/tools/", "Tools", "The tools of one server with the schemas that models see", Tools,
        lambda library, path, query: tools_page(library.server(path["name"]), page=query.get("page", "")),
        (_NAME, _PAGE), _servers,
    ),
    Page(
        "compare", "/servers/{name}/compare/{old}/{new}/", "Compare",
        "Two candidates of a server: what changes for callers, findings, sizes, and what went in", Compare,
        lambda library, path, _query: compare_page(
            library.server(path["name"]), path["old"], path["new"],
            library.kept(path["name"], path["old"]), library.kept(path["name"], path["new"]),
        ),
        (_NAME, Parameter("old", "The older candidate", within="path"), Parameter("new", "The newer one", within="path")),
        _compared,
    ),
    Page(
        "server_trends", "/servers/{name}/trends/", "Trends of a server",
        "Score, duration, tools and tokens of one server, run by run", Trends,
        lambda library, path, _query: trends_page(
            library.workspace_name(), library.histories(library.server(path["name"]).facts.name), server=path["name"]
        ),
        (_NAME,), _servers,
    ),
    Page(
        "runs", "/runs/", "Runs", "Every run of the pipeline, the newest first", Runs,
        lambda library, _path, query: runs_page(library.workspace_name(), library.histories(), page=query.get("page", "")),
        (_PAGE,),
    ),
    Page(
        "run", "/runs/{run}/", "Run", "One run: when each step ran, for how long, why, and how it ended", Run,
        lambda library, path, query: run_page(library.run(path["run"]), page=query.get("page", "")),
        (_RUN, _PAGE), _runs,
    ),
    Page(
        "server_run", "/runs/{run}/{name}/", "Run of a server", "What one run did at one server, with the logs", Run,
        lambda library, path, _query: run_page(library.run(path["run"], path["name"]), server=path["name"]),
        (_RUN, _NAME), _parts,
    ),
    Page(
        "trends", "/trends/", "Trends", "Score, duration, tools and tokens of all servers together, day by day", Trends,
        lambda library, _path, _query: trends_page(library.workspace_name(), library.histories()),
    ),
    Page(
        "rules", "/rules/", "Rules", "What each rule of the validation demands, and where that comes from", Rules,
        lambda library, _path, _query: rules_page(library.workspace_name()),
    ),
)  # fmt: skip
