"""The pictures of README and docs: small, used, and looking for nothing elsewhere."""

from __future__ import annotations

import re

from benchmarks.house.pictures import PICTURES as DRAWN
from tests.browser.pictures import FOLDER, PAGES, draw
from tests.house.pages import read_pages


def test_every_picture_is_small_and_on_a_page(root):
    used = {(page.file.parent / target).resolve() for page in read_pages(root) for target, _ in page.links()}
    made = sorted(file.name for file in FOLDER.iterdir())
    assert made == sorted(["terminal.svg", *(f"{name}.png" for name, *_ in PAGES), *DRAWN])
    assert [name for name in made if (FOLDER / name).resolve() not in used] == []
    assert [name for name in made if (FOLDER / name).stat().st_size > 150_000] == []


def test_a_picture_of_a_terminal_needs_no_font_of_another_host():
    for picture in (
        draw("\x1b[32m$\x1b[0m \x1b[1mmcpfactory\x1b[0m <&>"),
        (FOLDER / "terminal.svg").read_text("utf-8"),
    ):
        assert set(re.findall(r"https?://[^\s\"')]+", picture)) <= {
            "http://www.w3.org/2000/svg",
            "https://www.textualize.io",  # a comment: who draws it
        }
        assert "mcpfactory" in picture
        assert "@font-face" not in picture
