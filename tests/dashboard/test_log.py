"""The log of a stage: all of it, opened at the line that went wrong, searched, without commands of a terminal, and never as markup."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.dashboard.app import create_app
from tests.dashboard.conftest import EVIL, WorkspaceBuilder
from tests.dashboard.http_browser import Browser
from tests.dashboard.test_cancel import acting
from tests.dashboard.test_follow import going

__all__ = ["acting"]

PATH = "/servers/atlas/logs/test/"


class Atlas:
    """The log of the stage `test` of the server `atlas`, and what the dashboard shows of it."""

    def __init__(self, four_servers: WorkspaceBuilder) -> None:
        self.file = four_servers.workspace.artifacts / "atlas" / "logs" / "test.log"
        self.file.parent.mkdir(parents=True)
        self.client = TestClient(create_app(four_servers.root), base_url="http://127.0.0.1")

    def told(self, query: str = "") -> Any:
        answer = self.client.get(PATH + query, headers={"Accept": "application/json"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def shown(self, query: str = "") -> str:
        return self.client.get(PATH + query, headers={"Accept": "text/html"}).text

    def texts(self, query: str = "") -> list[str]:
        return [line["text"] for line in self.told(query)["lines"]]


@pytest.fixture
def atlas(four_servers: WorkspaceBuilder) -> Atlas:
    return Atlas(four_servers)


def lines_of(number: int) -> list[str]:
    return [f"line {one} of many, all of them of some length" for one in range(1, number + 1)]


def test_it_opens_at_the_line_that_went_wrong_and_all_of_it_is_reached_from_there(atlas: Atlas) -> None:
    lines = lines_of(4000)
    lines[2000] = "ValueError: the book is <gone>"
    atlas.file.write_text("\n".join(lines) + "\n")
    opened = atlas.told()
    wrong = next(line for line in opened["lines"] if line["wrong"])
    assert (wrong["number"], wrong["text"]) == (opened["wrong"], lines[2000]) == (2001, lines[2000])
    assert '<i id="wrong">2001</i> ValueError: the book is &lt;gone&gt;' in atlas.shown()
    assert f'?page={opened["pager"]["page"]}#line-2001"' in atlas.shown("?page=1")
    pages = [atlas.texts(f"?page={one}") for one in range(1, opened["pager"]["pages"] + 1)]
    assert [text for page in pages for text in page] == lines


def test_a_traceback_opens_at_the_line_of_its_last_exception(atlas: Atlas) -> None:
    lines = [
        "start",
        "Traceback (most recent call last):",
        '  File "a.py", line 1',
        "KeyError: 'isbn'",
        "",
        "During handling …:",
        "",
    ]
    lines += ["Traceback (most recent call last):", '  File "b.py", line 2', "BookMissing: no book", "end"]
    atlas.file.write_text("\n".join(lines) + "\n")
    assert atlas.told()["wrong"] == 10
    assert '<i id="wrong">10</i> BookMissing: no book' in atlas.shown()
    atlas.file.write_text("Traceback (most recent call last):")
    assert atlas.told()["wrong"] == 1


def test_a_log_in_which_nothing_went_wrong_opens_at_its_end(atlas: Atlas) -> None:
    atlas.file.write_text("\n".join(lines_of(4000)))
    assert atlas.texts()[-1] == lines_of(4000)[-1]
    for nonsense in ("?page=-1", "?page=x", "?page=²", "?page=1e9"):
        assert atlas.texts(nonsense)[0] == lines_of(1)[0], nonsense
    atlas.file.write_text("")
    assert atlas.texts() == []
    assert "Nothing was printed." in atlas.shown()


def test_a_search_finds_lines_in_any_case_wherever_they_are_and_each_leads_to_its_place(atlas: Atlas) -> None:
    lines = lines_of(4000)
    lines[3500] = "\x1b[32mÜber \x1b[1mthe\x1b[0m edge\x1b[0m"
    atlas.file.write_text("\n".join(lines) + "\n")
    assert [line["number"] for line in atlas.told("?q=LINE+39")["lines"]] == [39, *range(390, 400), *range(3900, 4000)]
    found = atlas.told("?q=%C3%BCBER+THE+edge")["lines"]
    assert [(line["number"], line["text"]) for line in found] == [(3501, "Über the edge")]
    link = re.search(r'href="([^"]*)\?page=(\d+)#line-3501"', atlas.shown("?q=%C3%BCber+the+edge"))
    assert link
    assert 'id="line-3501"' in atlas.shown(f"?page={link[2]}")
    assert "0 lines with “nothing”" in atlas.shown("?q=nothing")


def test_no_command_of_a_terminal_is_left_and_the_last_state_of_a_line_counts(atlas: Atlas) -> None:
    atlas.file.write_bytes(
        b"plain\r\n\x1b[1;31mred\x1b[0m \x1b[38;5;46mgreen\x1b[39m\n"
        b"\x1b]0;title\x07\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\ \x1b[2K\x1b[10;10H\x1b(Bcleared\x08\n"
        b"1 %\r50 %\r100 %\n"
    )
    assert atlas.texts() == ["plain", "red green", "link cleared", "100 %"]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", atlas.shown())


@pytest.mark.parametrize("text", [EVIL, "</div></main><h1>gone</h1>", '"><img src=x onerror=alert(1)>'])
def test_nothing_of_a_log_becomes_markup(atlas: Atlas, text: str) -> None:
    atlas.file.write_text(f"before\n{text}\nfailed: {text}\n")
    for query in ("", "?q=" + text[:5].replace("<", "%3C").replace('"', "%22")):
        page = atlas.shown(query)
        assert all(word not in page for word in ("<script>alert", "<h1>gone", "<img")), query
        assert text in unescape(re.sub(r"<[^>]*>", "", page))


@pytest.mark.parametrize(
    "data",
    [b"\n", b"x" * 300_000, b"\xff\x00" * 20_000, b"\x1b[" * 30_000, b"&\n" * 10_000, b"'\"&<" * 9_000, b"\r" * 99],
)
def test_any_bytes_are_a_log_and_each_page_of_it_is_small(atlas: Atlas, data: bytes) -> None:
    atlas.file.write_bytes(data)
    for page in range(1, atlas.told()["pager"]["pages"] + 1):
        assert len(atlas.shown(f"?page={page}").encode()) < 100_000


def test_of_a_very_long_log_the_end_is_shown_and_all_of_it_can_be_had(atlas: Atlas) -> None:
    atlas.file.write_bytes(b"the beginning\n" + b"x" * 99 + b"\n" * 5_000_000 + b"the end\n")
    told = atlas.told()
    assert told["unread"] == told["size"] - 4 * 1024 * 1024
    assert told["lines"][-1]["text"] == "the end"
    assert atlas.client.get(f"{PATH}raw").content == atlas.file.read_bytes()


def test_what_another_program_runs_is_neither_run_again_nor_cancelled_from_its_log(
    four_servers: WorkspaceBuilder, acting: str
) -> None:
    ada, run = Browser(acting).login("Ada"), new_id()
    with going(four_servers, run, "weather", "test") as log:
        log.write("at work\n")
        page = ada.get("/servers/weather/logs/test/").text
        assert "which is still running" in page
        assert "Run again from" not in page
        assert "Cancel this run" not in page
    assert "Run again from test" in ada.get("/servers/weather/logs/test/").text
