"""A run that was begun in the dashboard is ended there, in order; others are ended where they were begun."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import pytest

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.base.locks import register_run
from tests.dashboard.conftest import WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser, confirming
from tests.timeouts import wait_until

# A stage that goes on until it is ended.
STAGE = """
[[pipeline.stages]]
name = "endless"
needs = []
reads = ["config"]
command = ["tail", "-f", "/dev/null"]
"""


@pytest.fixture
def acting(four_servers: WorkspaceBuilder) -> Iterator[str]:
    config = four_servers.root / "mcpfactory.toml"
    config.write_text(config.read_text() + STAGE)
    with serving(four_servers.root, PEOPLE) as address:
        yield address


def begun(browser: Browser) -> str:
    """A run that goes on, by its id."""
    answer = browser.act("weather", "run", until="endless")
    assert answer.status == 303
    return answer.headers["location"].removeprefix("/runs/").rstrip("/")


def test_a_run_is_cancelled_by_a_confirmation_and_what_was_at_work_is_due_again(
    four_servers: WorkspaceBuilder, acting: str
) -> None:
    ada = Browser(acting).login("Ada")
    run = begun(ada)
    assert f'href="../../runs/{run}/actions/cancel/"' in ada.get(f"/runs/{run}/").text
    wait_until(lambda: "<li>weather endless</li>" in ada.get(f"/runs/{run}/actions/cancel/").text)
    page = ada.get(f"/runs/{run}/actions/cancel/").text
    assert "recorded as interrupted" in page
    answer = ada.post(f"/runs/{run}/actions/cancel/", confirming(page))
    assert (answer.status, answer.headers["location"]) == (303, f"/runs/{run}/")
    assert "end" in ada.get(f"/live/runs/{run}/").text  # which comes when the run has ended
    ends = [event for event in four_servers.store.history("weather") if event.get("run") == run]
    assert (ends[-1]["event"], ends[-1]["stage"]) == ("stage.interrupted", "endless")
    assert "Done: the run is stopping" in ada.get(f"/runs/{run}/").text
    page = ada.get(f"/runs/{run}/").text
    assert "/actions/cancel/" not in page
    assert "would run" in ada.get("/servers/weather/actions/run/", until="endless", check="1").text


def test_what_is_no_confirmation_ends_nothing(acting: str) -> None:
    ada, grace = Browser(acting).login("Ada"), Browser(acting).login("Grace")
    run = begun(ada)
    path = f"/runs/{run}/actions/cancel/"
    form = confirming(ada.get(path).text)
    assert Browser(acting).get(path).status == 303, "to the login"
    assert Browser(acting).post(path, form).status == 401
    assert grace.post(path, form).status == 403
    assert ada.post(path, form, Origin="http://evil.example").status == 403
    assert ada.post(path, {"ticket": "x" * 43}).status == 403
    assert "Cancel this run" in ada.get(f"/runs/{run}/").text, "it goes on"
    assert ada.post(path, form).status == 303
    assert ada.post(path, form).status == 403, "once"
    assert "end" in ada.get(f"/live/runs/{run}/").text


def test_a_run_of_elsewhere_is_not_ended_here(four_servers: WorkspaceBuilder, acting: str) -> None:
    ada, run = Browser(acting).login("Ada"), new_id()
    with register_run(four_servers.workspace.pipeline / "locks", run):
        page = unescape(ada.get(f"/runs/{run}/actions/cancel/").text)
        assert "was started in a terminal or by another program: cancel it there" in page
        assert 'name="ticket"' not in page
        assert "Cancel this run" not in ada.get(f"/runs/{run}/").text
    told = ada.get(f"/runs/{four_servers.run}/actions/cancel/?format=json").data
    assert told["problem"] == "this run has ended"
    assert told["ticket"] == ""
