"""Workspace reader of the dashboard. Responses are always current, but only changed data is read again.

A file counts as changed if its time, size or inode differs. If a channel requires soak time, pending items also depend
on the current time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

from mcpfactory_codegen.text import estimate_tokens
from mcpfactory_pipeline.base.errors import NotFoundError, PipelineError
from mcpfactory_pipeline.base.files import read_json
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.base.locks import (
    active_runs,
    awaited_servers,
    running_stages_of_server,
    running_stages_of_workspace,
)
from mcpfactory_pipeline.channels.candidate import channels_folder
from mcpfactory_pipeline.channels.contract import stored_contract
from mcpfactory_pipeline.dashboard.facts import (
    LogFacts,
    RunFacts,
    ServerDetail,
    ServerFacts,
    StoredCandidate,
    WorkspaceFacts,
)
from mcpfactory_pipeline.dashboard.runs import group_events_by_run
from mcpfactory_pipeline.dashboard.workspace_files import (
    Stamps,
    channel_page_stamps,
    file_stamps,
    hash_workspace_files,
    open_log,
    paths_below,
    read_log,
    read_validation_report,
)
from mcpfactory_pipeline.decisions.channel_review import next_candidate
from mcpfactory_pipeline.plan.plan import needed_stages
from mcpfactory_pipeline.run.runner import log_file
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.event_schema import STAGE_ENDS, STAGE_START, Event
from mcpfactory_pipeline.state.manifest import MANIFESTS, with_details
from mcpfactory_pipeline.state.state import ServerState, StageRecord
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.views.inbox import InboxItem, InboxReader, deleted_server_items
from mcpfactory_pipeline.views.status import broken_row
from mcpfactory_pipeline.views.suggestions import SuggestionValidator
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import (
    CODEOWNERS,
    Owners,
    Workspace,
    WorkspaceServer,
    broken_server_of_error,
    is_server_name,
    owners_of,
)

T = TypeVar("T")
Steps = frozenset[tuple[str, str, str]]  # set of (run, server, stage)

_SOAK_STEP: Final = 60  # seconds; pending items are computed again after this time if a channel requires soak time
_WRONG: Final = frozenset({"failed", "errored"})  # outcomes whose cause is in the log
# Last events of an unfinished stage.
_UNFINISHED: Final = frozenset({STAGE_START, "stage.interrupted"})
_STEP_EVENTS: Final = STAGE_ENDS | {STAGE_START}
_VALIDATION: Final = "validate/report.json"
_DETAILED: Final = 12  # servers; the page of a larger run has no reasons, because each stage needs a file
# Large fields of events, which pages about many servers do not need.
_LARGE_FIELDS: Final = frozenset({"inputs", "artifacts", "made_from"})


class _KnownServer(NamedTuple):
    """Facts of a server, and the stamps of its files at the time of reading."""

    paths: tuple[str, ...]
    stamps: Stamps
    facts: ServerFacts


class WorkspaceReader:
    """The workspace that contains `root`. Each method raises `WorkspaceError` if the workspace does not exist.

    Pages about many servers reuse data for up to `age` seconds. For an export (`live` is False), data is read only
    once, and responses have no waiting times. Without `logs`, pages of runs have no output of steps.
    """

    def __init__(
        self, root: Path, *, age: float = 0.0, live: bool = True, logs: bool = True, clock: Clock = utc_now
    ) -> None:
        self._root, self._age, self._live, self._logs, self._clock = root, age, live, logs, clock
        self._last: tuple[float, WorkspaceFacts] | None = None
        self._entries: dict[str, _KnownServer] = {}
        self._histories: dict[str, tuple[Stamps, list[Event]]] = {}
        self._made: dict[str, tuple[object, object]] = {}
        self._settings: tuple[object, ...] = ()
        self._opened: tuple[Workspace, InboxReader] | None = None
        self._read: tuple[tuple[str, ...], object] | None = None
        self._gone: tuple[object, tuple[InboxItem, ...]] = ((), ())
        self._owners: Owners = lambda _server: ()
        self._guard = threading.Lock()  # requests run in several threads
        self.seen = ""  # `digest` before the last read of all servers

    def workspace_name(self) -> str:
        """Return the name of the workspace."""
        return Workspace.find(self._root).name

    def workspace(self) -> WorkspaceFacts:
        """Return the facts of all servers, sorted by name."""
        if (last := self._last) is not None and (not self._live or time.monotonic() - last[0] < self._age):
            return last[1]
        seen = self.digest()
        workspace, inbox = self._open()
        names = workspace.names()
        with self._guard:
            servers = tuple(self._server(workspace, inbox, name) for name in names)
            self._entries = {name: self._entries[name] for name in names if name in self._entries}
        facts = WorkspaceFacts(
            workspace.name,
            servers,
            inbox.channels,
            inbox.now if self._live else None,
            self._gone_items(workspace, names, seen),
            inbox.stages,
        )
        self._last, self.seen = (time.monotonic(), facts), seen
        return facts

    def _gone_items(self, workspace: Workspace, names: Sequence[str], seen: str) -> tuple[InboxItem, ...]:
        """Return the pending items of removed servers."""
        now = seen, tuple(names), tuple(channel_page_stamps(channels_folder(workspace)))
        if self._gone[0] != now:
            self._gone = now, tuple(deleted_server_items(workspace))
        return self._gone[1]

    def server(self, name: str) -> ServerDetail:
        """Return one server with all details."""
        return self._once(("server", name), lambda: self._read_server(name))

    def _once(self, key: tuple[str, ...], read: Callable[[], T]) -> T:
        """Return the result of `read`. In an export, reuse the last result for an equal key."""
        if not self._live and self._read is not None and self._read[0] == key:
            return cast("T", self._read[1])
        found = read()
        self._read = key, found
        return found

    def _read_server(self, name: str) -> ServerDetail:
        workspace, inbox = self._open()
        if name not in self._entries:  # the name comes from a URL, so only read known servers
            _refuse_unknown(workspace, name)
        with self._guard:
            facts = self._server(workspace, inbox, name)
        if facts.row.get("problem"):
            return ServerDetail(facts, inbox.channels)
        server, store = workspace.server(name), inbox.store
        try:
            state, events = store.state(name), store.history_and_starts(name)
        except PipelineError as error:
            row = broken_row(broken_server_of_error(name, error))
            return ServerDetail(replace(facts, row=row, items=()), inbox.channels)
        validated = state.stages.get("validate")
        return ServerDetail(
            facts,
            inbox.channels,
            inbox.stages,
            state=state,
            history=[
                _detailed(workspace, name, one) if one.get("built") and one["candidate"] in state.candidates else one
                for one in events
            ],
            report=read_json(server.report),
            manifest=read_json(server.folder.joinpath("src", *server.package.split("."), "_generated/manifest.json")),
            validation=read_validation_report(workspace.artifacts / name / _validation_report(validated)),
            contract=_contract(workspace, name, state.candidate or ""),
        )

    def histories(self, server: str = "") -> dict[str, list[Event]]:
        """Return the events of one server, or of all servers including deleted servers. Large fields are omitted."""
        store = Store(self._workspace())
        with self._guard:
            return {name: self._history(store, name) for name in ([server] if server else store.servers())}

    def running_stages_now(self) -> Steps:
        """Return (run, server, stage) of each running step."""
        return running_stages_of_workspace(Store(self._workspace()).locks)

    def cached_from_histories(
        self, name: str, make: Callable[[Mapping[str, list[Event]]], T], *, also: Hashable = None
    ) -> T:
        """Return a value that `make` computes from all histories.

        The value is cached until a history or `also` changes.
        """
        histories = self.histories()
        with self._guard:
            stamps = tuple((server, *self._histories[server][0]) for server in histories if server in self._histories)
            known = self._made.get(name)
        if known is not None and known[0] == (stamps, also):
            return cast("T", known[1])
        made = make(histories)
        with self._guard:
            self._made[name] = ((stamps, also), made)
        return made

    def run(self, run: str, server: str = "") -> RunFacts:
        """Return the events of a run. With `server`, return only this server's events, and the logs.

        Raises:
            NotFoundError: no history contains the run.
        """
        return self._once(("run", run, server), lambda: self._read_run(run, server))

    def _read_run(self, run: str, server: str) -> RunFacts:
        workspace = self._workspace()
        store, before = Store(workspace), self.running_stages_now()
        if server:
            known = self.histories(server)[server] if is_server_name(server) else []
            found = {server: events} if (events := [event for event in known if event.get("run") == run]) else {}
        else:
            found = dict(self.cached_from_histories("runs of servers", group_events_by_run).get(run, {}))
        going = run in active_runs(store.locks)
        if not found and not going:
            raise NotFoundError(
                f"the history of workspace {workspace.name} has no run {run}" + (f" of {server}" if server else ""),
                hint="list the runs of a server with 'mcpfactory pipeline history NAME'",
            )
        # a stage that starts or ends during the read counts as running
        steps = before | self.running_stages_now()
        running = {name: [stage for *of, stage in steps if of == [run, name]] for name in found}
        if server or len(found) <= _DETAILED:
            found = {name: [_detailed(workspace, name, event) for event in events] for name, events in found.items()}
        logs = _logs(workspace, store, run, next(iter(found))) if self._logs and len(found) == 1 else {}
        for name, stages in running.items() if self._logs else ():
            logs |= {(name, stage): read_log(log_file(workspace, name, stage)) for stage in stages}
        waits = awaited_servers(store.locks, run) if going else {}
        waits = {name: other for name, other in waits.items() if server in {"", name}}
        kept = frozenset(_kept_logs(workspace, found, self.histories(server))) if found else frozenset()
        return RunFacts(
            workspace.name, run, found, running, logs, going, self._clock().timestamp(), waits, kept, _needs(workspace)
        )

    def log_file(self, server: str, stage: str) -> Path:
        """Return the path of a stage's newest log."""
        return log_file(self._workspace(), server, stage)

    def log(self, server: str, stage: str) -> LogFacts:
        """Return a stage's log path and status.

        Raises:
            NotFoundError: the server or stage is unknown. In this case, no file was read.
        """
        workspace = self._workspace()
        _refuse_unknown(workspace, server)
        known = [one.name for one in workspace_stages(workspace)]
        if stage not in known:
            raise NotFoundError(f"unknown stage {stage!r}", hint=f"use one of {', '.join(known)}")
        events = [event for event in self.histories(server)[server] if event.get("stage") == stage and event.get("run")]
        last: Event = events[-1] if events else {}
        run = str(last.get("run", ""))
        return LogFacts(
            workspace.name,
            server,
            stage,
            log_file(workspace, server, stage),
            "interrupted" if last.get("event") in _UNFINISHED else str(last.get("outcome") or ""),
            run,
            bool(run) and stage in running_stages_of_server(Store(workspace).locks, server, run),
        )

    def digest(self) -> str:
        """Return a text that changes when a server folder, a state, a history or a running step changes."""
        workspace = self._workspace()
        return hash_workspace_files(workspace.pipeline, workspace.names())

    def forget(self) -> None:
        """Ensure that the next response about many servers has current data."""
        self._last = None

    def suggestion_validator(self, server: str) -> SuggestionValidator:
        """Return a validator that tries commands as a permitted person and changes nothing."""
        workspace, inbox = self._open()
        return inbox.suggestion_validator(*inbox.status(workspace.server(server)))

    def stored_candidate(self, server: str, candidate: str) -> StoredCandidate:
        """Return the data of a candidate on this machine."""
        artifacts = self._workspace().artifacts / server
        known = Store(self._workspace()).state(server).candidates.get(candidate)
        if known is None:
            return StoredCandidate()
        folder, workspace = artifacts / candidate, self._workspace()
        listed = _contract(workspace, server, candidate, manifest=True) or _contract(workspace, server, candidate)
        return StoredCandidate(
            manifest={"tools": list(listed)} if listed else {},
            report=read_validation_report(artifacts / candidate / _VALIDATION),
            sizes={name: (folder / name).stat().st_size for name in known.files if (folder / name).is_file()},
        )

    def _workspace(self) -> Workspace:
        return Workspace.find(self._root) if self._live or self._opened is None else self._opened[0]

    def _open(self) -> tuple[Workspace, InboxReader]:
        if self._opened is not None and not self._live:
            return self._opened
        workspace = Workspace.find(self._root)
        inbox = InboxReader.open(workspace, clock=self._clock)
        soaking = any(channel.soak for channel in inbox.channels)
        moment = int(inbox.now.timestamp()) // _SOAK_STEP if soaking else 0
        owners = file_stamps(str(workspace.root / name) for name in CODEOWNERS)
        settings = (repr(workspace.settings), inbox.now.date(), moment, owners)  # waivers expire at the end of a day
        with self._guard:
            if settings != self._settings:
                self._entries, self._settings, self._owners = {}, settings, owners_of(workspace)
        self._opened = workspace, inbox
        return self._opened

    def _server(self, workspace: Workspace, inbox: InboxReader, name: str) -> ServerFacts:
        known = self._entries.get(name)
        if known is not None and known.stamps == file_stamps(known.paths):
            return known.facts
        # Take the stamps first, so that a file that changes during the read is read again the next time.
        store, folder = inbox.store, f"{workspace.root}/servers/{name}"
        own = (store.state_file(name), store.history_file(name), store.locks / f"{name}.running")
        places = (*map(str, own), *paths_below(folder))
        before = file_stamps(places)
        try:
            server = workspace.server(name)
            row, state = inbox.status(server)
            items = tuple(inbox.of(server, row, state))
        except NotFoundError:
            raise
        except Exception as error:  # noqa: BLE001 - one server's broken files must not stop the other servers
            return ServerFacts(workspace.name, name, broken_row(broken_server_of_error(name, error)))
        facts = ServerFacts(
            workspace.name,
            name,
            row,
            server.template,
            server.source or "",
            items=items,
            owners=self._owners(name),
            logs=tuple(stage for stage, file in _failed_logs(workspace, name, state) if file.is_file()),
            approved=dict(_approvers(inbox.channels, state)),
            **_size(workspace, server, state),
        )
        if not row["at_work"]:  # do not cache running stages, because a killed process changes no file
            watched = tuple(map(str, _watched(workspace, server, state)))
            self._entries[name] = _KnownServer((*places, *watched), (*before, *file_stamps(watched)), facts)
        return facts

    def _history(self, store: Store, name: str) -> list[Event]:
        known = self._histories.get(name)
        if known is not None and not self._live:
            return known[1]
        now = file_stamps([str(store.history_file(name)), str(store.locks / f"{name}.running")])
        if known is None or known[0] != now:
            events: list[Event] = [
                {k: v for k, v in event.items() if k not in _LARGE_FIELDS} for event in _events(store, name)
            ]
            self._histories[name] = known = (now, events)
        return known[1]


def _detailed(workspace: Workspace, server: str, event: Event) -> Event:
    return with_details(event, workspace.artifacts / server / MANIFESTS)


def _needs(workspace: Workspace) -> dict[str, Set[str]]:
    stages = workspace_stages(workspace)
    return {stage.name: needed_stages(stages, stage.name) for stage in stages if not stage.approval}


def _refuse_unknown(workspace: Workspace, name: str) -> None:
    try:
        workspace.server(name)
    except NotFoundError:
        raise
    except PipelineError:
        return


def _watched(workspace: Workspace, server: WorkspaceServer, state: ServerState) -> Iterator[Path]:
    folder = workspace.artifacts / server.name
    yield from (file for _, file in _failed_logs(workspace, server.name, state))
    newest = state.candidates.get(state.candidate or "")
    if newest is not None:
        yield from (folder / str(state.candidate) / name for name in newest.files)
    for channel in state.channels:
        yield (
            channels_folder(workspace)
            / channel
            / "simple"
            / (server.package or server.name).replace("_", "-")
            / "index.html"
        )
    validated = state.stages.get("validate")
    yield folder / _validation_report(validated)


def _validation_report(validated: StageRecord | None) -> str:
    return f"{(validated and validated.candidate) or 'reports'}/{_VALIDATION}"


def _failed_logs(workspace: Workspace, server: str, state: ServerState) -> Iterator[tuple[str, Path]]:
    for stage, record in state.stages.items():
        if record.outcome in _WRONG:
            yield stage, log_file(workspace, server, stage)


def _approvers(channels: Iterable[ChannelPolicy], state: ServerState) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the approvers of each channel's next candidate.

    Approvals are omitted if the channel offered the candidate before, because a rollback may have revoked these
    approvals.
    """
    for channel in channels:
        known = state.candidates.get(next_candidate(state, channel)) if channel.source else None
        if known and channel.name not in known.channels and not channel.signed:
            yield channel.name, tuple(known.approvals.get(channel.name, ()))


def _size(workspace: Workspace, server: WorkspaceServer, state: ServerState) -> dict[str, int | None]:
    report = read_json(server.report)
    tools = report.get("tools")
    if isinstance(tools, list):
        return {"tools": len(tools), "tokens": report.get("tokens")}
    candidate = state.candidates.get(state.candidate or "")
    facts = candidate.facts if candidate else {}
    if "tools" in facts:
        return {"tools": facts.get("tools"), "tokens": facts.get("tokens")}
    listed = _contract(workspace, server.name, state.candidate or "")
    return (
        {"tools": len(listed), "tokens": sum(map(estimate_tokens, listed))}
        if listed
        else {"tools": None, "tokens": None}
    )


def _contract(
    workspace: Workspace, server: str, candidate: str, *, manifest: bool = False
) -> tuple[Mapping[str, Any], ...]:
    folder = workspace.artifacts / server / candidate
    try:
        found = stored_contract(folder, manifest=manifest) if candidate else None
    except PipelineError:
        return ()
    return found.tools if found else ()


def _events(store: Store, name: str) -> list[Event]:
    try:
        return store.history_and_starts(name)
    except PipelineError:
        return []  # the page of the server explains how to repair it


def _logs(workspace: Workspace, store: Store, run: str, server: str) -> dict[tuple[str, str], str]:
    """Return the logs of a run by (server, stage). Logs that a later run has overwritten are omitted."""
    found = {}
    for event in _events(store, server):
        if event.get("run") != run or event["event"] != "stage.finished":
            continue
        relative = f"logs/{event['stage']}.log"
        file = log_file(workspace, server, str(event["stage"]))
        if _detailed(workspace, server, event).get("artifacts", {}).get(relative) == _hash_log(file):
            found[server, str(event["stage"])] = read_log(file)
    return found


def _kept_logs(
    workspace: Workspace, found: Mapping[str, Sequence[Event]], histories: Mapping[str, Sequence[Event]]
) -> Iterator[str]:
    """Yield the event IDs of steps whose logs have not been overwritten."""
    for server, events in found.items():
        last = {str(one.get("stage")): one["id"] for one in histories[server] if one["event"] in _STEP_EVENTS}
        for one in events:
            stage = str(one.get("stage"))
            ended = one["event"] == "stage.finished" and last[stage] == one["id"]
            if ended and log_file(workspace, server, stage).is_file():
                yield str(one["id"])


def _hash_log(file: Path) -> str:
    try:
        with open_log(file) as stream:
            return hash_bytes(stream.read())
    except OSError:
        return ""
