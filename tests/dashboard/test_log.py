"""The log of a stage: all of it, at the line that went wrong, searched, in colours, folded, and never as markup; of 50 MB as little as is shown."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.facts import LogFacts
from mcpfactory_pipeline.dashboard.log import LogPage, log_page
from mcpfactory_pipeline.dashboard.log_text import Ink
from tests.dashboard.conftest import EVIL, Bench
from tests.dashboard.person import Browser
from tests.dashboard.test_cancel import acting
from tests.dashboard.test_follow import going
from tests.rows import rows

__all__ = ["acting"]

PATH = "/servers/atlas/logs/test/"
MEGABYTE = 1_000_000


class Atlas:
    """The log of the stage `test` of the server `atlas`, and what the dashboard shows of it."""

    def __init__(self, library: Bench) -> None:
        self.file = library.workspace.artifacts / "atlas" / "logs" / "test.log"
        self.file.parent.mkdir(parents=True)
        self.client = TestClient(create_app(library.root), base_url="http://127.0.0.1")

    def told(self, query: str = "") -> Any:
        answer = self.client.get(PATH + query, headers={"Accept": "application/json"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def shown(self, query: str = "") -> str:
        return self.client.get(PATH + query, headers={"Accept": "text/html"}).text

    def texts(self, query: str = "") -> list[str]:
        return [line["text"] for line in self.told(query)["lines"]]


@pytest.fixture
def atlas(library: Bench) -> Atlas:
    return Atlas(library)


def lines_of(number: int) -> list[str]:
    return [f"line {one} of many, all of them of some length" for one in range(1, number + 1)]


def test_it_opens_at_the_line_that_went_wrong_and_all_of_it_is_reached_from_there(atlas: Atlas) -> None:
    lines = lines_of(4000)
    lines[2000] = "ValueError: the book is <gone>"
    atlas.file.write_text("\n".join(lines) + "\n")
    opened = atlas.told()
    wrong = next(line for line in opened["lines"] if line["wrong"])
    assert (wrong["at"], wrong["number"], wrong["text"]) == (opened["wrong"], 2001, lines[2000])
    assert 10 < opened["lines"].index(wrong) < len(opened["lines"]) < 400, "with what stands before it, and after"
    page = atlas.shown()
    assert f'<i id="wrong">2001</i> {"ValueError: the book is &lt;gone&gt;"}' in page
    forward, at = list[str](), 0
    while at >= 0:
        part = atlas.told(f"?from={at}")
        assert part["start"] == at
        forward += [line["text"] for line in part["lines"]]
        at = part["after"]
    assert forward == lines
    backward, part = list[str](), atlas.told("?from=end")
    while True:
        backward = [line["text"] for line in part["lines"] if line["number"] <= 4000 - len(backward)] + backward
        if part["before"] < 0:
            break
        part = atlas.told(f"?from={part['before']}")
    assert backward == lines
    assert atlas.texts("?from=70001")[0] in lines, "a whole line"
    links = {"": "from=0 from=end", "?from=0": "from=end", "?from=end": "from=0", "?from=70000": "from=0 from=end"}
    for query, expected in links.items():
        found = re.findall(r'href="[^"]*\?(from=0|from=end)">', atlas.shown(query))
        assert sorted(set(found)) == expected.split(), query


def test_a_search_finds_lines_in_any_case_wherever_they_are_and_each_leads_to_its_place(atlas: Atlas) -> None:
    lines = lines_of(4000)
    lines[3500] = "\x1b[32mÜber \x1b[1mthe\x1b[0m edge\x1b[0m"
    atlas.file.write_text("\n".join(lines) + "\n")
    first = atlas.told("?q=LINE+39")
    assert len(first["lines"]) == 100
    rest = atlas.told(f"?q=LINE+39&from={first['after']}")
    assert [line["number"] for line in (*first["lines"], *rest["lines"])] == [39, *range(390, 400), *range(3900, 4000)]
    assert rest["after"] == -1
    found = atlas.told("?q=%C3%BCBER+THE+edge")["lines"]
    assert [(line["number"], line["text"]) for line in found] == [(3501, "Über the edge")]
    page = atlas.shown("?q=%C3%BCber+the+edge")
    link = re.search(r'href="([^"]*)\?at=(\d+)#at-\2"', page)
    assert link, page
    assert f'id="at-{link[2]}"' in atlas.shown(f"?at={link[2]}")
    assert "0 lines with “nothing”" in atlas.shown("?q=nothing")


def test_colours_become_classes_and_no_other_command_of_a_terminal_is_left(atlas: Atlas) -> None:
    atlas.file.write_text(
        "plain\n\x1b[1;31mred\x1b[0m and \x1b[38;5;46mgreen\x1b[39m \x1b[38;2;10;20;250mblue\x1b[m\n"
        "\x1b[33mbegins\nhere\x1b[0m\n"
        "\x1b]0;title\x07\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\ \x1b[2K\x1b[10;10H\x1b(Bcleared\x9b\r\x08\n"
    )
    page = atlas.shown()
    assert (
        '<span class="red bold">red</span> and <span class="green">green</span> <span class="blue">blue</span>' in page
    )
    assert '<span class="yellow">begins</span>' in page
    assert '<span class="yellow">here</span>' in page, "a colour goes on in the next line"
    assert "link cleared" in page
    assert "example.com" not in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", page)
    assert atlas.texts() == ["plain", "red and green blue", "begins", "here", "link cleared"]


@rows("codes, style", [
        ("0", ""), ("", ""), ("1", "bold"), ("1;22", ""), ("4;9", "strike underline"), ("31;39", ""), ("95", "bright-magenta"),
        ("41", "on-red"), ("107", "on-white"), ("41;49", ""), ("7", "reverse"), ("38;5;9", "bright-red"), ("38;5;232", "black"),
        ("38;5;255", "white"), ("48;5;21;1", "on-blue bold"), ("38;2;255;255;0;3", "yellow italic"), ("38;2;1", ""), ("38", ""),
        ("38:5:1", "red"), ("38;5;999", "white"), ("1;;", ""), ("99999", ""), ("12345678901234567890", ""),
    ])  # fmt: skip
def test_what_codes_mean(codes: str, style: str) -> None:
    assert Ink().after(codes).style == style


def test_every_style_that_a_log_can_ask_for_is_in_the_style_sheet() -> None:
    sheet = TestClient(create_app(Path()), base_url="http://127.0.0.1").get("/assets/style.css").text
    asked = {Ink().after(f"{kind};5;{number}").style for kind in (38, 48) for number in range(256)}
    asked |= {Ink().after(str(number)).style for number in range(110)}
    assert len(asked) > 25
    assert [style for style in asked if style and f".log .{style}" not in sheet] == []


@pytest.mark.parametrize(
    "text", [EVIL, "</div></main><h1>gone</h1>", '"><img src=x onerror=alert(1)>', "\x1b[31m<b\x1b[0m>x</b>"]
)
def test_nothing_of_a_log_becomes_markup(atlas: Atlas, text: str) -> None:
    quiet = re.sub(r"\x1b\[\d*m", "", text)
    atlas.file.write_text(f"before\n{text}\nfailed: {text}\n" + f"{text}\n" * 50)
    for query in ("", "?q=" + quiet[:5].replace("<", "%3C").replace('"', "%22")):
        page = atlas.shown(query)
        assert all(word not in page for word in ("<script>alert", "<h1>gone", "<img", "<b>", "</b>")), query
        assert quiet in unescape(re.sub(r"<[^>]*>", "", page))


def test_lines_that_say_the_same_in_a_row_are_one_that_can_be_opened(atlas: Atlas) -> None:
    atlas.file.write_text("begin\n" + "waiting for the database\n" * 5014 + "twice\ntwice\nend\n")
    part = atlas.told("?from=0")
    assert [(line["text"], line["number"], line["times"]) for line in part["lines"]] == [
        ("begin", 1, 1), ("waiting for the database", 2, 5014), ("twice", 5016, 1), ("twice", 5017, 1), ("end", 5018, 1),
    ]  # fmt: skip
    page = atlas.shown("?from=0")
    assert "<summary>… 5,014 times</summary>" in page
    assert page.count("waiting for the database") == 40, "the first, and what opens"
    assert "and 4,974 more, which say the same" in page
    assert page.count(">twice<") + page.count(" twice</div>") == 2


def test_of_a_line_that_was_written_over_the_last_state_is_shown_and_what_went_wrong(atlas: Atlas) -> None:
    bar = "".join(f"\x1b[32m{one:3} % of wheels\x1b[0m\r" for one in range(1000))
    atlas.file.write_bytes(f"begin\n{bar}done\nthen\r\n {bar}ERROR: the disk is full\r  \r100 %\nend\n".encode())
    lines = atlas.told()["lines"]
    assert [(line["text"].strip(), line["number"], line["replaced"], line["wrong"]) for line in lines] == [
        ("begin", 1, 0, False), ("done", 2, 1000, False), ("then", 3, 0, False), ("ERROR: the disk is full", 4, 1000, True), ("100 %", 4, 0, False),
        ("end", 5, 0, False),
    ]  # fmt: skip
    assert [state["text"] for state in lines[1]["states"]] == [f"{one} % of wheels" for one in range(990, 1000)]
    data = atlas.file.read_bytes()
    assert all(data[one["at"] :].lstrip(b"\x1b[32m").startswith(one["text"].encode()) for one in lines[1]["states"])
    page = atlas.shown()
    assert "<summary>… 1,000 states of line 2 before</summary><div><i>…</i> 990 more</div>" in page
    assert '<i id="wrong">4</i> ERROR: the disk is full' in page
    assert page.count("% of wheels") == 20
    at = data.index(b"  5 % of") - 5
    assert f'<div id="at-{at}"><i>2</i>' in atlas.shown(f"?at={at}"), (
        "what is named is shown, however many came after it"
    )


@pytest.mark.parametrize("before", [0, 5])
def test_a_read_that_ends_within_the_end_of_a_line_makes_no_line_of_its_half(atlas: Atlas, before: int) -> None:
    atlas.file.write_bytes(b"." * before + b"Error:\r\n" * 30_000)
    lines = atlas.told("?from=0")["lines"]
    assert {line["text"].lstrip(".") for line in lines} == {"Error:"}
    assert sum(line["times"] for line in lines) == 30_000
    assert atlas.told(f"?from={before + 8 * 100 + 7}")["start"] == before + 8 * 100, (
        "of its two bytes neither begins a line"
    )


@pytest.mark.parametrize("end", [b"\r", b"\r\r\n"])
def test_a_bar_of_any_length_is_reached_part_by_part_and_no_state_comes_twice(atlas: Atlas, end: bytes) -> None:
    """Also where a read ends between a carriage return and its line feed."""
    states = [b"%05d of them %s" % (one, b"=" * (one % 23)) for one in range(2_500)]
    atlas.file.write_bytes(b"begin\n" + b"".join(state + end for state in states) + b"the end\n")
    at, parts, shown = 0, 0, list[str]()
    while at >= 0:
        part = atlas.told(f"?from={at}")
        assert part["after"] == -1 or part["after"] > at
        assert len(atlas.shown(f"?from={at}").encode()) < 100_000
        shown += [line["text"] for line in part["lines"] for _ in range(line["times"])]
        shown += [state["text"] for line in part["lines"] for state in line["states"]]
        at, parts = part["after"], parts + 1
    assert len(shown) == len(set(shown))
    assert set(shown) <= {"begin", "the end", *(state.decode() for state in states)}
    assert len(shown) == len(states) + 2 if end.endswith(b"\n") else len(shown) > 4
    assert parts < 100 if b"\n" in end else parts < 10
    part = atlas.told("?from=end")
    assert part["lines"][-1]["text"] == "the end"
    while part["before"] >= 0:
        earlier = atlas.told(f"?from={part['before']}")
        assert earlier["start"] < part["start"] <= earlier["end"]
        part = earlier
    assert part["lines"][0]["text"] == "begin"


def test_all_of_it_comes_as_a_file_byte_by_byte(atlas: Atlas) -> None:
    data = b"\x1b[31m<red>\x1b[0m\r\n\xff\xfe" + bytes(range(256)) * 1000
    atlas.file.write_bytes(data)
    answer = atlas.client.get(f"{PATH}raw")
    assert answer.content == data
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="atlas-test.log"'
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_log_but_that_of_a_stage_of_a_server_is_shown(library: Bench, atlas: Atlas) -> None:
    (library.root / "secret.log").write_text("secret")
    for server, stage in (
        ("atlas", "..%2f..%2f..%2f..%2fsecret"),
        ("atlas", "nothing"),
        ("none", "test"),
        ("zebra", "test"),
    ):
        for end in ("", "raw"):
            answer = atlas.client.get(f"/servers/{server}/logs/{stage}/{end}")
            assert answer.status_code == 404, (server, stage, end)
            assert "secret" not in answer.text.replace("..%2fsecret", "").replace("/secret", "")


class Counted(io.FileIO):
    """A file that counts how many bytes were read of it."""

    read_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size) or b""
        self.read_bytes += len(data)
        return data


def opened(file: Path, **wishes: str) -> tuple[LogPage, int]:
    """A part of a log, and how many bytes were read for it."""
    with Counted(str(file)) as stream:
        return log_page(LogFacts("library", "atlas", "test", file, "failed"), stream, **wishes), stream.read_bytes


@pytest.fixture
def large(atlas: Atlas) -> Iterator[Atlas]:
    """50 MB, in whose last tenth of a percent something goes wrong; one line in its middle is found nowhere else."""
    block = "".join(
        f"{number:06} is a line that says nothing of note, and is long enough\n" for number in range(14_000)
    ).encode()
    with atlas.file.open("wb") as stream:
        for number in range(58):
            stream.write(block)
            if number == 30:
                stream.write(b"a needle in it\n")
        stream.write(b"E       assert the end\n" + block[:40_000])
    assert atlas.file.stat().st_size > 50 * MEGABYTE
    yield atlas
    atlas.file.unlink()


def test_of_a_log_of_50_mb_only_what_is_shown_is_read(large: Atlas) -> None:
    size = large.file.stat().st_size
    page, read = opened(large.file)
    wrong = next(line for line in page.lines if line.wrong)
    assert wrong.text == "E       assert the end"
    assert (wrong.at, wrong.number) == (page.wrong, 0), "which line it is, nobody counted"
    assert read < 2 * MEGABYTE
    for wish in ({"start": "0"}, {"start": "end"}, {"start": str(size // 2)}, {"place": str(size // 2)}):
        page, read = opened(large.file, **wish)
        assert 100 < len(page.lines) < 400
        assert read < 2 * MEGABYTE, wish
    found, read = opened(large.file, query="needle")
    assert not found.lines
    assert read < 18 * MEGABYTE, "a search says how far it came"
    while not found.lines and found.after > 0:
        found, _ = opened(large.file, query="needle", start=str(found.after))
    assert [line.text for line in found.lines] == ["a needle in it"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 300_000,
        b"\xff\x00" * 20_000,
        b"a\r\nb",
        b"\x1b[" * 30_000,
        b"<" * 999 + b"\n" + b"&\n" * 3_000,
        b"".join(b"line %d\n" % number for number in range(2_000)) + b"x" * 20_000 + b"\ntail" * 400,
    ],
)
def test_any_bytes_are_a_log_and_a_part_of_it_is_small(atlas: Atlas, data: bytes) -> None:
    atlas.file.write_bytes(data)
    at, parts, texts = 0, 0, 0
    while at >= 0:
        page = atlas.shown(f"?from={at}")
        assert len(page.encode()) < 100_000
        part = atlas.told(f"?from={at}")
        texts += sum(len(line["text"]) for line in part["lines"])
        assert part["after"] == -1 or part["after"] > at
        at, parts = part["after"], parts + 1
    assert texts <= len(data) + 1000 * parts
    assert parts < 100
    part = atlas.told("?from=end")
    assert data == b"" or part["lines"], "at its end there is something"
    while part["before"] >= 0:
        earlier = atlas.told(f"?from={part['before']}")
        assert (earlier["start"], earlier["end"] >= part["start"]) == (part["before"], True)
        assert earlier["start"] < part["start"]
        part = earlier
    assert part["start"] == 0


@pytest.mark.parametrize(("size", "at"), [(20_000, 0), (65_536, 3), (200_000, 65_536)])
def test_a_very_long_line_is_one_and_is_shown_once(atlas: Atlas, size: int, at: int) -> None:
    short = [b"%0999d" % number for number in range(at // 1000)] + [b"x" * (at % 1000 - 1)] * (at % 1000 > 0)
    lines = [*short, b"y" * size, b"Error: the end", b"z" * 70_000, *(b"%d" % number for number in range(400))]
    data = b"\n".join(lines)
    atlas.file.write_bytes(data)
    shown, page = list[tuple[int, int]](), 0
    while page >= 0:
        part = atlas.told(f"?from={page}")
        assert part["start"] == page, "where the last one ended"
        shown += [(line["at"], line["number"]) for line in part["lines"]]
        page = part["after"]
    assert shown == sorted(set(shown)), "once"
    assert shown == [(place, data[:place].count(b"\n") + 1) for place, _ in shown]
    assert {number for _, number in shown} == set(range(1, len(lines) + 1))
    assert data.index(b"z" * 70_000) in [place for place, _ in shown]
    texts = atlas.texts()
    assert texts[texts.index("Error: the end") - 1].startswith("y"), "what stands before what went wrong"
    found = [(line["number"], line["at"]) for line in atlas.told("?q=error")["lines"]]
    assert found == [(len(short) + 2, data.index(b"Error"))]


def test_a_part_with_the_most_to_escape_and_to_link_is_small(atlas: Atlas) -> None:
    names = "".join(f"\x1b[{31 + one % 6};4m'\"&<behaviour.tools-work\x1b[0m " for one in range(5000))
    atlas.file.write_text("\n".join(names[at : at + 400] for at in range(0, len(names), 400)))
    assert len(atlas.shown("?from=0").encode()) < 100_000


def test_what_another_program_runs_is_neither_run_again_nor_cancelled_from_its_log(library: Bench, acting: str) -> None:
    ada, run = Browser(acting).login("Ada"), new_id()
    with going(library, run, "weather", "test") as log:
        log.write("at work\n")
        page = ada.get("/servers/weather/logs/test/").text
        assert "which goes on" in page
        assert "Run again from" not in page
        assert "Cancel this run" not in page
    assert "Run again from test" in ada.get("/servers/weather/logs/test/").text
