"""The pictures of README and docs: small, used, and looking for nothing elsewhere."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from benchmarks.codebase.pictures import PICTURES as DRAWN
from tests.browser.screenshots import FOLDER, PAGES, draw


def test_every_picture_is_small_and_on_a_page(pages):
    used = {(page.file.parent / target).resolve() for page in pages for target, _ in page.links()}
    made = sorted(file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*.*"))
    assert made == sorted(["pipeline.svg", "terminal.svg", *(f"{name}.png" for name, *_ in PAGES), *DRAWN])
    assert [name for name in made if (FOLDER / name).resolve() not in used] == []
    assert [name for name in made if (FOLDER / name).stat().st_size > 150_000] == []


def elsewhere(picture: str) -> set[str]:
    """What a browser would load for a picture: of attributes and of styles, but not the text that is shown."""
    elements = list(ElementTree.fromstring(picture).iter())
    styles = " ".join(element.text or "" for element in elements if element.tag.endswith("}style"))
    attributes = {value for element in elements for value in element.attrib.values() if "//" in value}
    return attributes | set(re.findall(r"url\([^)]*\)|@import[^;]*", styles))


def test_a_picture_of_a_terminal_needs_nothing_of_another_host():
    for picture in (
        draw("\x1b[32m$\x1b[0m \x1b[1mmcpfactory\x1b[0m http://127.0.0.1:1/v1 <&>"),
        (FOLDER / "terminal.svg").read_text("utf-8"),
    ):
        assert "mcpfactory" in picture
        assert elsewhere(picture) == set()


def test_a_picture_of_the_pipeline_needs_nothing_of_another_host():
    picture = (FOLDER / "pipeline.svg").read_text("utf-8")
    assert "to approve" in picture
    assert elsewhere(picture) == set()


def test_what_a_picture_would_load_is_seen():
    picture = '<svg xmlns="http://www.w3.org/2000/svg"><style>{}</style>{}</svg>'
    for style, element in (
        ("@font-face { src: url(https://fonts.test/a.woff2) }", ""),
        ('@import "https://fonts.test/a.css";', ""),
        ("", '<image href="https://pictures.test/a.png" />'),
    ):
        assert len(elsewhere(picture.format(style, element))) == 1
