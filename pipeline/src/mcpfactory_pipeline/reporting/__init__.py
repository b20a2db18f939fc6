"""Report runs on a terminal, and send events to files, webhooks, chats and mail.

Delivery never delays or fails a command. Undelivered events are dropped, with a message on stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import quote

from mcpfactory_pipeline.base.events import Reporter, RunEvent
from mcpfactory_pipeline.base.ids import format_time, new_id, utc_now
from mcpfactory_pipeline.reporting.line_reporter import LineReporter
from mcpfactory_pipeline.workspace.settings import DECISIONS, EventSettings
from mcpfactory_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    from mcpfactory_pipeline.reporting.receivers import MailSender, WebhookSender


def make_reporter(kind: str, stream: TextIO | None = None) -> Reporter:
    """Return the reporter of that kind (`live`, `plain` or `json`). The default stream is stdout."""
    stream = stream or sys.stdout
    if kind == "live":
        from mcpfactory_pipeline.reporting.live_reporter import LiveReporter  # noqa: PLC0415 - loads rich

        return LiveReporter(stream)
    return LineReporter(stream, as_json=kind == "json")


class Notifier:
    """Sender of events to the workspace's receivers. `close` waits a few seconds for unsent events."""

    def __init__(self, workspace: Workspace, settings: EventSettings) -> None:
        self._workspace, self._settings = workspace, settings
        self._receivers: dict[str, tuple[_Receiver | WebhookSender | MailSender, Collection[str]]] = {}
        if settings.log:
            self._receivers["log"] = (_LogFile(workspace, settings.log), settings.kinds)
        if settings.problem:
            self._receivers["webhook"] = (_Receiver(settings.problem), settings.kinds)
        elif settings.url:
            from mcpfactory_pipeline.reporting.receivers import WebhookSender  # noqa: PLC0415 - loads the HTTP client

            self._receivers["webhook"] = (WebhookSender(settings), settings.kinds)
        if settings.mail and settings.mail.problem:
            self._receivers["mail"] = (_Receiver(settings.mail.problem), settings.mail.kinds)
        elif settings.mail:
            from mcpfactory_pipeline.reporting.receivers import MailSender  # noqa: PLC0415 - loads the mail modules

            self._receivers["mail"] = (MailSender(settings.mail, settings.timeout), settings.mail.kinds)

    def receivers_of(self, kind: str) -> list[str]:
        """Return the receivers of events of a kind. The receivers are `log`, `webhook` and `mail`."""
        return [name for name, (_, kinds) in self._receivers.items() if kind in kinds]

    def link(self, path: str) -> str:
        """Return the URL of a dashboard path; "" if the dashboard's address is not configured."""
        return self._settings.link(path)

    def notify(self, event: Mapping[str, Any], *, but: Collection[str] = ()) -> None:
        """Send one event to the receivers of its kind, except receivers in `but`.

        The method never waits and never raises an error.
        """
        names = [name for name in self.receivers_of(str(event["event"])) if name not in but]
        if not names:
            return
        place = self.link(quote(f"servers/{event['server']}/")) if event.get("server") else ""
        about = {"id": new_id(), "at": format_time(utc_now()), "workspace": self._workspace.name}
        for name in names:
            self._receivers[name][0].send({**about, **({"link": place} if place else {}), **event})

    def close(self) -> dict[str, Set[str]]:
        """Close the receivers; report unsent events on stderr, and return their IDs by receiver."""
        missed: dict[str, Set[str]] = {}
        for name, (receiver, _) in self._receivers.items():
            if said := receiver.close():
                sys.stderr.write(f"warning: events: {said}\n")
                missed[name] = receiver.undelivered
        self._receivers = {}
        return missed


def make_notifier(workspace: Workspace) -> Notifier | None:
    """Return the notifier of a workspace; None without receivers."""
    settings = workspace.settings.pipeline.events
    known = settings.log or settings.url or settings.problem or settings.mail
    return Notifier(workspace, settings) if known else None


def notify_made_decisions(workspace: Workspace, server: str, events: Iterable[Mapping[str, Any]]) -> None:
    """Send the decisions among a server's events. The run already sends the events of stages."""
    decisions = [event for event in events if event["event"] in DECISIONS]
    if decisions and (others := make_notifier(workspace)):
        for event in decisions:
            others.notify({"server": server, **event})
        others.close()


class NotifyingReporter(Reporter):
    """A reporter that passes each event to another reporter and to the notifier."""

    def __init__(self, reporter: Reporter, others: Notifier) -> None:
        self._reporter, self._others = reporter, others

    def emit(self, event: RunEvent) -> None:
        """Report one event, and send it to the receivers."""
        self._reporter.emit(event)
        self._others.notify(event.to_json())

    def close(self) -> None:
        """Close the reporter and the notifier after the run."""
        self._reporter.close()
        self._others.close()


class _Receiver:
    """An unavailable receiver, with the reason and the IDs of the undelivered events."""

    def __init__(self, why: str = "") -> None:
        self._why = why
        self.undelivered: set[str] = set()

    def send(self, notice: Mapping[str, Any]) -> None:
        self.undelivered.add(str(notice["id"]))

    def close(self) -> str:
        return self._why if self.undelivered else ""


class _LogFile(_Receiver):
    """A log file. Each line is one write, so several processes can append lines."""

    def __init__(self, workspace: Workspace, path: str) -> None:
        super().__init__()
        self._file, self._path = workspace.root / path, path

    def send(self, notice: Mapping[str, Any]) -> None:
        line = json.dumps(notice, ensure_ascii=False) + "\n"
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab", buffering=0) as stream:
                stream.write(line.encode())
        except OSError as error:
            self._why = f"{self._path} cannot be written: {error.strerror}"
            super().send(notice)
