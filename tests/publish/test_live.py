"""What is live where is known to status, inbox and dashboard; what was promoted since, and what broke off, is shown with its command."""

from __future__ import annotations

import pytest
from filelock import FileLock
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.errors import TargetUnavailableError
from mcpfactory_pipeline.base.locks import is_locked
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.delivery.publish.publish import publish
from mcpfactory_pipeline.delivery.publish.target import PublishTarget
from mcpfactory_pipeline.reporting.line_reporter import status_table
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.views.inbox import read_inbox
from mcpfactory_pipeline.views.status import status


@pytest.fixture
def live(promoted, index):
    """The workspace, with its first release at the index."""
    promoted.configure(index.settings)
    promoted.put()
    publish(promoted.workspace, "books", ["pypi"])
    return promoted


def waiting(promoted, *kinds: str) -> list[tuple[str, str, str]]:
    items = read_inbox(promoted.workspace)
    return [(item.kind, item.about, item.command) for item in items if item.kind in kinds and item.about != "behind"]


def page(promoted) -> TestClient:
    return TestClient(create_app(promoted.workspace.root), base_url="http://127.0.0.1:8765")


def test_status_and_dashboard_say_what_is_live_where(live):
    (row,) = status(live.workspace)
    assert row["published"]["pypi"]["version"] == "1.0.0"
    assert status_table([row])[0][-1] == "PUBLISHED"
    assert status_table([row])[1][0][-1] == "pypi 1.0.0"
    (shown,) = page(live).get("/servers/books/", headers={"Accept": "application/json"}).json()["published"]
    assert (shown["target"], shown["actor"], shown["behind"]) == ("pypi", "tester", "")
    assert shown["since"] == live.events[-1]["at"]
    assert "Published" in page(live).get("/servers/books/").text
    assert verify(live.workspace) == []


def test_what_was_promoted_since_is_drift_until_it_is_published(live):
    assert waiting(live, "drift") == []
    live.put("1.1.0")
    assert waiting(live, "drift") == [("drift", "live", "mcpfactory publish books --target pypi")]
    assert status_table(status(live.workspace))[1][0][-1] == "pypi 1.0.0*"
    (shown,) = page(live).get("/servers/books/", headers={"Accept": "application/json"}).json()["published"]
    assert shown["behind"] == "production offers 1.1.0"
    publish(live.workspace, "books", ["pypi"])
    assert waiting(live, "drift") == []


def test_a_rollback_is_drift_until_it_is_published_and_the_newer_version_is_yanked(live, index):
    first = live.state.channels["production"].candidate
    live.put("1.1.0")
    publish(live.workspace, "books", ["pypi"])
    with Store(live.workspace).transaction("books") as transaction:
        transaction.append("rolled-back", channel="production", candidate=first, version="1.0.0", reason="bad")
    assert waiting(live, "drift") == [("drift", "live", "mcpfactory publish books --target pypi")]
    assert publish(live.workspace, "books", ["pypi"])[0].evidence["newest"] == "1.1.0"
    (message,) = [item.message for item in read_inbox(live.workspace) if item.about == "live"]
    assert message.startswith("pypi also has 1.1.0")
    index.yanked = "1.1.0"
    assert publish(live.workspace, "books", ["pypi"])[0].outcome == "there"
    assert waiting(live, "drift") == []


def test_a_publish_that_broke_off_waits_in_the_inbox_but_not_while_another_is_under_way(live, index):
    live.put("1.1.0")
    index.break_at = len(index.forms) + 1
    with pytest.raises(TargetUnavailableError):
        publish(live.workspace, "books", ["pypi"])
    assert waiting(live, "publish") == [("publish", "pypi", "mcpfactory publish books --target pypi")]
    assert "stopped; publish again" in page(live).get("/").text
    with FileLock(live.workspace.pipeline / "locks" / "books.publish.lock"):
        assert waiting(live, "publish") == []
    publish(live.workspace, "books", ["pypi"])
    assert waiting(live, "publish") == []


@pytest.mark.parametrize(("mode", "alone"), [("send", True), ("dry-run", True), ("check", False)])
def test_what_makes_files_is_alone_so_that_never_those_of_another_are_sent(live, mode, alone):
    lock, seen = live.workspace.pipeline / "locks" / "books.publish.lock", []

    def check(_release, _settings):
        seen.append(is_locked(lock))
        return ()

    probe = PublishTarget("probe", "a target that looks at the lock", lambda _release, _settings: {}, check)
    publish(live.workspace, "books", ["probe"], mode=mode, table={"probe": probe})
    assert seen == [alone]
