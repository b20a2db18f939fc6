"""The static site in the states that are easily forgotten: nothing yet, far too much, and broken."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.dashboard.export import export
from tests.dashboard.conftest import EVIL, LONG_NAME, WorkspaceBuilder

LONG = "a_server_with_a_name_that_is_as_long_as_names_may_be_" + "n" * 43
LIMIT = 100_000


def nothing(builder: WorkspaceBuilder) -> None:
    """A workspace in which nobody has made a server."""


def much(builder: WorkspaceBuilder) -> None:
    """Two servers with the longest names, of which one has 300 findings and a long past."""
    text = f"{EVIL} and the words go on without any end " * 40
    for end in ("1", "2"):
        builder.add(LONG + end, source=f"https://example.com/{text}")
        builder.finished(LONG + end, "generate", "failed", message=text, fresh=False)
    findings = [
        {"rule": RULES[number % len(RULES)].id, "message": f"{number}: {text}", "severity": 1 + number % 5, "gate": number % 7 == 0,
         "hint": text, "source": "s", "where": f"tool_{number}", "evidence": {"request": {"text": text}, "response": text}}
        for number in range(300)
    ]  # fmt: skip
    for number in range(12):
        candidate = builder.built(LONG + "1", f"1.{number}.0")
        report = {"score": number, "passed": False, "findings": findings, "not_checked": []}
        builder.validated(LONG + "1", candidate, "failed", report)


def broken(builder: WorkspaceBuilder) -> None:
    """A state that is none, a configuration that is none, and a history with a line that is none."""
    for name in ("torn", "mad", "odd"):
        builder.add(name)
        builder.passed(name, "generate")
    builder.store.state_file("torn").write_text("<<<<<<< ours\n")
    (builder.root / "servers/mad/mcpfactory.toml").write_text("[server\n")
    builder.store.history_file("odd").write_text("no event\n")


@pytest.mark.parametrize("state", [nothing, much, broken])
def test_every_link_leads_to_a_place_in_the_folder_and_no_page_is_large(
    builder: WorkspaceBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state
) -> None:
    monkeypatch.setenv("MCPFACTORY_ACTOR", LONG_NAME)
    state(builder)
    site = tmp_path / "site"
    export(builder.root, site)
    pages = {page: page.read_text("utf-8") for page in site.rglob("*.html")}
    places = {page: set(re.findall(r'\sid="([^"]+)"', text)) for page, text in pages.items()}
    seen = 0
    for page, text in pages.items():
        assert len(text.encode()) < LIMIT, page
        assert EVIL not in text
        for link in map(html.unescape, re.findall(r'\s(?:href|src|action)="([^"]*)"', text)):
            if link.startswith("data:,"):
                continue
            path, _, place = link.partition("#")
            target = (page.parent / unquote(path)).resolve() if path else page
            assert target.is_relative_to(site.resolve()) or not path, f"{page}: {link}"
            assert target.is_file(), f"{page}: {link}"
            assert not place or unquote(place) in places[target if path else page], f"{page}: {link}"
            seen += 1
    assert seen > 20


def test_a_site_without_servers_says_how_to_begin(builder: WorkspaceBuilder, tmp_path: Path) -> None:
    site = tmp_path / "site"
    export(builder.root, site)
    for page in ("index.html", "board/index.html"):
        assert "No servers yet" in (site / page).read_text("utf-8"), page
    assert "<h1" in (site / "runs/index.html").read_text("utf-8")
