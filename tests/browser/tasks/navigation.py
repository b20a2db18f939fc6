"""Tasks about navigation and access: keyboard, phone, addresses, other browsers and programs, files."""

from __future__ import annotations

import itertools
import json
import re

from tests.browser.demo_workspace import TOKENS, run
from tests.browser.tasks.decisions import confirm, look_at_the_candidate
from tests.browser.tasks.person import PHONE, Person, Setting
from tests.browser.tasks.workspace import MANY, TORN_TEST

_APPROVED = ("approved", "Ada")
# Elements for which a screen reader would read only the role.
_NAMELESS = re.compile(r"^\s*- (?:link|button|checkbox|radio|textbox|searchbox|combobox|img)(?::|$)", re.MULTILINE)
_LEVELS = re.compile(r"heading .*\[level=(\d)\]")


def _waits(at: Setting) -> list[tuple[str, str]]:
    """Return kind and server of each inbox item, from the command line."""
    return sorted((item["kind"], item["server"]) for item in at.shop.told("inbox"))


def _heading(items: list[tuple[str, str]]) -> str:
    return f"{len(items)} items of {len({server for _, server in items})} servers waiting"


def waiting(at: Setting) -> None:
    """Check that the front page shows all inbox items and their number."""
    person = at.person()
    person.open()
    items = _waits(at)
    person.sees(_heading(items))
    shown = person.reads()
    for kind, server in items:
        assert kind in shown, f"{kind} of {server} is not on the page"
        assert server in shown, f"{server} is not on the page"
    person.sees("1 of 1 approval missing")
    person.fill("Find a server", "torn")
    mine = sum(server == "torn" for _, server in items)
    person.sees(f"{mine} of {len(items)} shown")


def _approve(person: Person) -> None:
    """Approve a candidate from the front page, with any input device."""
    person.log_in()
    look_at_the_candidate(person)
    person.fill("Reason", "looked at it")
    person.press("Approve")
    confirm(person, "Approve bookshop")


def filter_many(at: Setting) -> None:
    """Find one of a thousand servers by a part of its name."""
    person = at.person()
    person.open()
    person.follow("Board")
    person.sees(f"{MANY:,} of {MANY:,} shown")
    person.fill("Find a server", "042")
    rows = at.shop.told("pipeline", "status", root=at.shop.many())
    names = sorted(row["server"] for row in rows if "042" in row["server"])
    person.sees(f"{len(names)} of {MANY:,} shown")
    shown = person.reads()
    assert [name for name in names if name not in shown] == []
    person.follow("shop-0421")
    person.sees("1.3.0")


def keyboard(at: Setting) -> None:
    """Approve from the front page without a mouse."""
    ada = at.person("Ada")
    ada.open()
    ada.reach("link", "Log in to act")
    ada.key("Enter")
    ada.reach("textbox", "Token")
    ada.write(TOKENS["Ada"])
    ada.key("Enter")
    ada.sees("acting as Ada")
    for _ in range(10):
        ada.key("j")
        if {"bookshop", "production"} <= set(ada.focused_row().split()):
            break
    ada.key("Enter")
    ada.sees("Tests and figures")
    ada.key("a")
    ada.sees("What will happen")
    ada.key("y")
    ada.sees("Done: ")
    assert at.shop.decisions("bookshop")[-1] == _APPROVED


def without_javascript(at: Setting) -> None:
    """Approve, singly and in bulk, without JavaScript."""
    ada = at.person("Ada", java_script_enabled=False)
    _approve(ada)
    assert at.shop.decisions("bookshop")[-1] == _APPROVED
    ada.open()
    for server in ("drafts", "notes"):
        ada.tick(f"Mark {server} for production")
    ada.press("Approve marked")
    ada.press("Approve 2 candidates")
    ada.sees("Done: ")
    assert [at.shop.decisions(server)[-1] for server in ("drafts", "notes")] == [_APPROVED] * 2


def phone(at: Setting) -> None:
    """Approve by touch on a small screen that nothing exceeds."""
    ada = at.person("Ada", **PHONE)
    ada.log_in()
    assert ada.fits(), ada.address
    look_at_the_candidate(ada)
    assert ada.fits(), ada.address
    ada.press("Approve")
    ada.sees("What will happen")
    assert ada.fits(), ada.address
    confirm(ada, "Approve bookshop")
    assert ada.fits(), ada.address
    assert at.shop.decisions("bookshop")[-1] == _APPROVED


def command_line(at: Setting) -> None:
    """Run a command, and check that the open page updates without a reload."""
    ada = at.person("Ada")
    ada.log_in()
    ada.sees("Live: this page follows what happens.")
    loads = ada.loads
    ada.tick("Mark notes for production")
    run(at.shop.root, "pipeline", "approve", "bookshop", "--channel", "production", "--reason", "fine")
    ada.sees("Promote", "bookshop", "ready")
    items = _waits(at)
    ada.sees(_heading(items))
    assert ada.title.startswith(f"Inbox ({len(items)})"), ada.title
    assert ada.loads == loads, "the page was loaded again"
    assert ada.ticked("Mark notes for production"), "what was marked is marked no more"


def deep_links(at: Setting) -> None:
    """Check that an address shows the same content to other people."""
    ada = at.person("Ada")
    places = []
    ada.log_in()
    look_at_the_candidate(ada)
    places.append((ada.address, "Tests and figures"))
    ada.follow("Everything about bookshop")
    ada.follow("Candidates")
    places.append((ada.address, "0.1.0"))
    ada.follow("Board")
    ada.fill("Find a server", "note")
    ada.sees("1 of 4 shown")
    places.append((ada.address, "1 of 4 shown"))
    ada.open()
    ada.follow("torn", "torn", "failed")
    ada.follow("Log of test, where it went wrong")
    places.append((ada.address, "assert 1 + 1 == 3"))
    for address, text in places:
        other = at.person()
        other.open(address)
        assert other.in_view(text), f"{text!r} is not on the screen at {address}"
    assert len({address for address, _ in places}) == len(places)
    assert at.shop.decisions("bookshop")[-1] == ("promoted", "Grace"), "nothing was done by looking"
    assert (at.shop.root / TORN_TEST).is_file()


def back_button(at: Setting) -> None:
    """Go back from a page, and from a confirmation; nothing may happen twice."""
    ada = at.person("Ada")
    ada.log_in()
    ada.fill("Find a server", "book")
    ada.sees("shown")
    ada.misses("torn")
    ada.follow("bookshop", "bookshop", "production")
    ada.sees("Tests and figures")
    ada.back()
    ada.sees("Find a server")
    ada.misses("torn")
    ada.follow("bookshop", "bookshop", "production")
    ada.press("Approve")
    confirm(ada, "Approve bookshop")
    ada.back()
    if "What will happen" in ada.reads():
        ada.press("Approve bookshop")
        ada.sees("you have already confirmed this action")
    assert at.shop.decisions("bookshop").count(_APPROVED) == 1


def reload(at: Setting) -> None:
    """Reload pages: the content must be the same, and no action may be repeated."""
    ada = at.person("Ada")
    _approve(ada)
    ada.reload()
    ada.misses("Done: ")
    ada.follow("Board")
    ada.fill("Find a server", "note")
    ada.sees("1 of 4 shown")
    ada.reload()
    ada.sees("1 of 4 shown")
    assert at.shop.decisions("bookshop").count(_APPROVED) == 1


def export(at: Setting) -> None:
    """Check that exported files show what the dashboard shows, without requests outside their folder."""
    folder = at.shop.place / "site"
    files = at.shop.told("dashboard", "--export", str(folder))["files"]
    inside = f"{folder.as_uri()}/"
    person = at.person(inside=inside)
    person.open(f"{inside}index.html")
    items = _waits(at)
    person.sees(_heading(items))
    person.follow("bookshop", "bookshop", "production")
    person.sees("Tests and figures")
    person.follow("Everything about bookshop")
    person.follow("Findings")
    person.follow("Runs")
    person.follow("Board")
    person.fill("Find a server", "note")
    person.sees("1 of 4 shown")
    assert person.address.startswith(inside)
    assert "index.html" in files


def dark(at: Setting) -> None:
    """Choose the dark scheme: it must persist, and all text must be readable."""
    person = at.person(color_scheme="light")
    person.open()
    assert not person.dark()
    person.press("Dark theme")
    assert person.dark()
    person.look.judge()
    person.follow("Board")
    assert person.dark()
    person.look.judge()
    person.reload()
    assert person.dark()
    person.press("Light theme")
    assert not person.dark()


def read_json(at: Setting) -> None:
    """Check that the JSON of the page equals that of the command line."""
    person = at.person()
    person.open()
    person.follow("This page as JSON")
    page = json.loads(person.whole())
    assert sorted((item["kind"], item["server"]) for item in page["items"]) == _waits(at)
    assert page["total"] == len(_waits(at))


def screen_reader(at: Setting) -> None:
    """Approve by roles and names alone; check landmarks, heading order, and that all controls have names."""
    ada = at.person("Ada")
    ada.log_in()
    trees = {"the inbox": ada.tree()}
    look_at_the_candidate(ada)
    trees["the decision"] = ada.tree()
    ada.press("Approve")
    ada.sees("What will happen")
    trees["the confirmation"] = ada.tree()
    confirm(ada, "Approve bookshop")
    trees["the server"] = ada.tree()
    ada.follow("Board")
    ada.sees("Board 4 servers")
    trees["the board"] = ada.tree()
    for place, tree in trees.items():
        for landmark in ("banner", 'navigation "Site"', 'navigation "Breadcrumb"', "main", "contentinfo"):
            assert f"- {landmark}" in tree, f"{place} has no {landmark}"
        assert not (nameless := _NAMELESS.findall(tree)), f"{place} has what has no name: {nameless}"
        levels = [int(level) for level in _LEVELS.findall(tree)]
        assert levels.count(1) == 1, f"{place} has {levels.count(1)} headings of the first level"
        jumps = [(one, two) for one, two in itertools.pairwise(levels) if two > one + 1]
        assert not jumps, f"{place} leaves out levels of headings: {jumps}"
    assert 'status: "Done' in trees["the server"] or "Done:" in trees["the server"]
    assert at.shop.decisions("bookshop")[-1] == _APPROVED


_REASON = "the prices are wrong since Monday"


def who_decided(at: Setting) -> None:
    """Find who rejected a candidate and why, over all servers."""
    run(at.shop.root, "pipeline", "reject", "bookshop", "--channel", "production", "--reason", _REASON)
    person = at.person()
    person.open()
    person.follow("Decisions")
    person.choose("Person", "Grace")
    person.choose("Decision", "rejected")
    person.sees(_REASON)
    person.sees("1 of ")


def phone_history(at: Setting) -> None:
    """Read decisions with their reasons on a phone."""
    run(at.shop.root, "pipeline", "reject", "bookshop", "--channel", "production", "--reason", _REASON)
    person = at.person(**PHONE)
    person.open()
    person.follow("Decisions")
    person.sees(_REASON)
    person.sees("Grace")
    assert person.fits()


def deleted_folder(at: Setting) -> None:
    """Notice that a server's folder goes and comes back, without a reload."""
    person = at.person()
    person.open()
    person.follow("Board")
    person.sees("4 of 4 shown")
    folder, away = at.shop.root / "servers/notes", at.shop.root / "away"
    folder.rename(away)
    person.sees("3 of 3 shown")
    away.rename(folder)
    person.sees("4 of 4 shown")


def export_without_secrets(at: Setting) -> None:
    """Check that an export has neither logs nor paths of the machine."""
    folder = at.shop.place / "public"
    at.shop.told("dashboard", "--export", str(folder))
    text = "".join(file.read_text("utf-8") for file in folder.rglob("index.*"))
    assert "line of output" not in text
    assert str(at.shop.root) not in text
    inside = f"{folder.as_uri()}/"
    person = at.person(inside=inside)
    person.open(f"{inside}index.html")
    person.sees(_heading(_waits(at)))
