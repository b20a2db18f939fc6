"""A workspace with one server that went to staging, and what people do to it."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

import pytest

from mcpfactory_codegen.settings import check_settings
from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.base.ids import format_time, parse_time
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.settings import WorkspaceSettings
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import STAGES, add_server


def configured(space: Workspace, text: str = "") -> Workspace:
    """Return the workspace with other pipeline settings."""
    (space.root / "mcpfactory.toml").write_text(f'[workspace]\nname = "space"\n[pipeline]\nbackoff = 0\n{text}')
    return Workspace.find(space.root)


def settings_of(**tables: object) -> WorkspaceSettings:
    """Return the settings of a root file with these tables."""
    return check_settings(WorkspaceSettings, {"workspace": {}, **tables}, "mcpfactory.toml")


def offered(workspace, channel: str, project: str = "books") -> list[bytes]:
    """Return the bytes that an installer gets from the links of a project's page; check their hashes."""
    page = workspace.pipeline / "channels" / channel / "simple" / project / "index.html"
    found = []
    for target, digest in re.findall(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', page.read_text()):
        data = (page.parent / target).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest
        found.append(data)
    return found


YEAR = timedelta(days=365)


class Clock:
    """A clock that only tests move. It starts a year ago, because events must not be in the future."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1) - YEAR

    def __call__(self) -> datetime:
        return self.at

    def pass_(self, **time: int) -> None:
        self.at += timedelta(**time)


class StagedWorkspace:
    """A workspace with one server that went to staging, and what people do to it."""

    def __init__(self, workspace, run) -> None:
        self.workspace, self._run, self.clock = workspace, run, Clock()
        self.folder = workspace.root / "servers" / "books"
        if not self.folder.exists():
            add_server(workspace.root, "books")
            self.run("books")

    def run(self, *names: str, **options):
        """Run stages, and set the times of their events to the time of the clock."""
        outcome = self._run(*names, **options)
        for file in (self.workspace.pipeline / "history").glob("*.jsonl"):
            file.write_text(re.sub(r'(?<="at":")[^"]+', self._dated_back, file.read_text()))
            Store(self.workspace).state(file.stem)  # writes a snapshot of the new text, as a run does
        return outcome

    def _dated_back(self, found: re.Match[str]) -> str:
        at = parse_time(found[0])
        return format_time(at - YEAR if at > self.clock.at + YEAR / 2 else at)

    @property
    def state(self):
        return Store(self.workspace).state("books")

    def configure(self, text: str) -> None:
        self.workspace = configured(self.workspace, '[[pipeline.channels]]\nname = "staging"\n' + text)

    def next(self, source: str) -> str:
        """Put another candidate into staging; return its ID."""
        (self.folder / "source.txt").write_text(source)
        self.run("books")
        return self.state.candidate

    def promote(self, channel: str = "production", **options):
        return promote(self.workspace, "books", channel, stages=STAGES, clock=self.clock, **options)

    def rollback(self, channel: str = "production", **options):
        return rollback(
            self.workspace, "books", channel, stages=STAGES, clock=self.clock, **{"reason": "it is bad", **options}
        )

    def decide(self, what: str, *arguments, **options):
        if what in {"retire", "revive"}:
            return getattr(decision, what)(self.workspace, "books", *arguments, clock=self.clock, **options)
        return getattr(decision, what)(
            self.workspace, "books", *(arguments or ("production",)), stages=STAGES, clock=self.clock, **options
        )

    def offered(self, channel: str) -> list[bytes]:
        return offered(self.workspace, channel)


def refused(match: str):
    return pytest.raises(PromotionError, match=match)


SOAK = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\nsoak = "24h"\n'


def shipped_at(books: StagedWorkspace) -> datetime:
    event = next(e for e in reversed(Store(books.workspace).history("books")) if e.get("channel") == "staging")
    return datetime.fromisoformat(event["at"])


def two_in_production(books: StagedWorkspace) -> tuple[str, str]:
    first = books.state.candidate
    books.decide("approve")
    books.promote()
    second = books.next("two")
    books.decide("approve")
    books.promote()
    return first, second
