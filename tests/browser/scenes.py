"""Scenes of the browser tests. Each scene returns the number of checked items and the faults, instead of raising."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.dashboard.pages import PAGES, path_of
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.browser.demo_workspace import TOKEN, command, dashboard
from tests.browser.hostile import WORD, make_hostile
from tests.browser.page_audit import SHAPES, Looker, looker
from tests.dates import NEXT_MONTH

Told = tuple[str, list[str]]  # number of checked items, and the faults


# What sticks out of the window, where the page has to be moved sideways because of it.
_WIDER = """() => document.documentElement.scrollWidth <= innerWidth + 1 ? "" :
  "something " + [...document.querySelectorAll("body *")].filter((one) => !one.closest(".wide") && one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => `${one.localName}.${one.className} ${(one.textContent || "").trim().slice(0, 40)}`).slice(-2).join(" | ")"""


# How many tables of cards have to be moved sideways, or have a cell that sticks out of its card.
_CUT = """() => [...document.querySelectorAll("table.cards")].filter((table) => table.parentElement.scrollWidth > table.parentElement.clientWidth + 1
  || [...table.querySelectorAll("tbody tr:not([hidden]) > *")].some((cell) => cell.getBoundingClientRect().right > cell.parentElement.getBoundingClientRect().right + 1)).length"""


def _paths(root: Path) -> Iterator[tuple[str, str]]:
    """Return the kind and path of every dashboard page."""
    library = WorkspaceReader(root)
    for page in PAGES:
        for values in page.instances(library, [server.name for server in library.workspace().servers]):
            yield page.name, path_of(page, values)


def visit(browser: Any, url: str, root: Path, shots: Path) -> Told:
    """Check every page in all color schemes and sizes: no errors, no violations, nothing wider than the window."""
    faults: list[str] = []
    paths, judged = list(_paths(root)), 0
    for shape, options in SHAPES.items():
        with looker(browser, url, **options) as look:
            pictured = set()
            for kind, path in paths:
                look.open(url + path)
                look.judge()
                if wide := look.page.evaluate(_WIDER):
                    faults.append(f"{path} is wider than the window: {wide} ({shape})")
                if "phone" in shape and (cut := look.page.evaluate(_CUT)):
                    faults.append(f"{path}: of {cut} cards a part is reached sideways only ({shape})")
                if kind not in pictured:
                    pictured.add(kind)
                    look.picture(shots, f"{kind}-{shape}")
            faults += look.complaints + look.violations
            judged += look.judged
    return f"{len(paths)} pages in {len(SHAPES)} shapes, {judged} times axe-core", faults


# Every text of the page that is wider than its cell, and so lies upon the next: the column that it is in, and how it begins.
_OVER = """() => [...document.querySelectorAll("td, th, dd, dt, .row > span")].filter((one) => one.scrollWidth > one.clientWidth + 2
  && getComputedStyle(one).overflow === "visible").map((one) => `${one.localName}.${one.className} ${(one.textContent || "").trim().slice(0, 40)}`).slice(0, 2).join(" | ")"""


def long_words(browser: Any, _url: str, root: Path, shots: Path) -> Told:
    """Check pages with words of 300 letters: nothing exceeds the window or overlaps, and commands are visible."""
    hostile, faults = make_hostile(root.parent), list[str]()
    paths = list(_paths(hostile))
    paths += [
        ("action", f"/servers/short/actions/{one}/?check=1&reason={WORD}")
        for one in ("hold", "unhold", "reject", "waive")
    ]
    paths += [("try", f"/servers/short/tools/{WORD[:120]}_0/try/"), ("found", f"/board/?q={WORD}")]
    with dashboard(hostile) as url:
        for shape in ("light-wide", "dark-phone"):
            with looker(browser, url, **SHAPES[shape]) as look:
                _login(look, url.rstrip("/"), "short")
                pictured = set()
                for kind, path in paths:
                    look.open(url.rstrip("/") + path)
                    if wide := look.page.evaluate(_WIDER):
                        faults.append(f"{path[:60]} is wider than the window: {wide} ({shape})")
                    if over := look.page.evaluate(_OVER):
                        faults.append(f"{path[:60]}: a text lies upon the next: {over} ({shape})")
                    if kind == "inbox" and "wide" in shape:
                        seen = look.page.eval_on_selector_all(
                            ".row .what code", "all => all.map((one) => one.clientWidth)"
                        )
                        faults += [f"a command of the inbox has {width} pixels" for width in seen if width < 100]
                    if kind not in pictured:
                        pictured.add(kind)
                        look.picture(shots, f"long-{kind}-{shape}")
                faults += [
                    one for one in look.complaints if "/actions/" not in one
                ]  # some of these actions are always refused
    return f"{len(paths)} pages in 2 shapes", faults


def _login(look: Looker, url: str, server: str = "bookshop") -> None:
    look.open(f"{url}/servers/{server}/")
    look.page.click("text=Log in to act")
    look.page.wait_for_selector("#token")
    look.judge()
    look.page.fill("#token", TOKEN)
    look.page.click("button.main")
    look.page.wait_for_url(f"{url}/servers/{server}/")


def _deed(look: Looker, url: str, server: str, action: str, **values: str) -> None:
    """Carry out an action as a person does: link, form, check, confirmation."""
    look.open(f"{url}/servers/{server}/")
    look.page.click(f".actions a[href$='actions/{action}/']")
    look.page.wait_for_url(f"**/actions/{action}/")
    look.judge()
    for name, value in values.items():
        place = look.page.locator(f"#in-{name}")
        if place.evaluate("one => one.localName") == "select":
            place.select_option(value)
        else:
            place.fill(value)
    if look.page.locator("input[name=force]").count():
        look.page.check("input[name=force]")
    look.page.click("button:text-is('Check')")
    look.page.wait_for_selector("#confirm")
    look.judge()
    look.page.click("#confirm")
    look.page.wait_for_load_state()


def act(browser: Any, url: str, root: Path, shots: Path) -> Told:
    """Carry out every action with the mouse as Ada, and check that the history contains each."""
    deeds: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("approve", "approved", {"channel": "production", "reason": "tried it"}),
        ("promote", "promoted", {"channel": "production"}),
        ("hold", "held", {"channel": "production", "reason": "audit"}),
        ("unhold", "released", {"channel": "production"}),
        ("rollback", "rolled-back", {"channel": "staging", "reason": "orders fail"}),
        ("unhold", "released", {"channel": "staging"}),
        ("reject", "rejected", {"channel": "production", "reason": "prices are wrong"}),
        ("waive", "waived", {"rule": "descriptions.arguments", "until": NEXT_MONTH, "reason": "soon"}),
    )
    faults: list[str] = []
    with looker(browser, url, **SHAPES["light-wide"]) as look:
        _login(look, url)
        for number, (action, event, values) in enumerate(deeds):
            _deed(look, url, "bookshop", action, **values)
            if look.page.locator("section.callout.good", has_text="Done:").count() != 1:
                faults.append(f"{action}: the page does not say that it is done")
            last = Store(Workspace.find(root)).history("bookshop")[-1]
            if (last["event"], last["actor"]) != (event, "Ada"):
                faults.append(f"{action}: the history ends with {last['event']} by {last['actor']}")
            if number == 0:
                look.picture(shots, "done-light-wide")
        look.open(f"{url}/servers/bookshop/actions/hold/?channel=staging&reason=audit")
        look.picture(shots, "action-light-wide")
        faults += look.complaints + look.violations
        return f"{len(deeds)} actions confirmed, {look.judged} times axe-core", faults


def attempt(browser: Any, url: str, _root: Path, shots: Path) -> Told:
    """Try a tool; the candidate's server must respond."""
    with looker(browser, url, **SHAPES["dark-wide"]) as look:
        _login(look, url)
        look.open(f"{url}/servers/bookshop/tools/")
        look.page.click("text=Try get_book")
        look.page.wait_for_selector("#raw")
        look.judge()
        look.page.fill("[id='in-arg.isbn']", "9780306406157")
        look.page.click("button.main")
        look.page.wait_for_selector("#tried")
        look.judge()
        look.picture(shots, "try-dark-wide")
        text = look.page.inner_text("#content")
        faults = [
            f"the page lacks {words!r}"
            for words in ("GET /books/9780306406157", '"title": "value"')
            if words not in text
        ]
        return f"get_book called, {look.judged} times axe-core", faults + look.complaints + look.violations


def follow(browser: Any, url: str, root: Path, shots: Path) -> Told:
    """Follow a run started in the browser to its end; check that the board shows a run started in a terminal."""
    faults: list[str] = []
    with looker(browser, url, **SHAPES["light-wide"]) as look, looker(browser, url, **SHAPES["dark-phone"]) as board:
        _login(look, url)
        _deed(look, url, "bookshop", "run")
        look.page.wait_for_url(re.compile(r"/runs/[^/]+/$"))
        loaded = time.monotonic()
        look.page.evaluate("window.same = true")  # gone when the page is loaded again
        look.page.locator("#tails code", has_text=re.compile(r"\w")).first.wait_for(timeout=180_000)
        look.picture(shots, "run-going-light-wide")
        look.judge()
        rows = look.page.locator("#state tbody tr").count()
        look.page.locator("#live", has_text="The run has ended.").wait_for(timeout=300_000)
        took = time.monotonic() - loaded
        after = look.page.locator("#state tbody tr").count()
        if after <= rows or not look.page.evaluate("window.same === true"):
            faults.append(f"the table of steps had {rows} rows and then {after}, or the page was loaded again")
        board.open(f"{url}/board/")
        with subprocess.Popen(
            command("pipeline", "run", "later", "--until", "build"), cwd=root, stdout=subprocess.DEVNULL
        ) as run:
            board.page.wait_for_selector("tr[data-name=later] .status.busy", timeout=120_000)
            run.wait(300)
        board.page.wait_for_selector("tr[data-name=later] .status.busy", state="detached", timeout=60_000)
        faults += [*look.complaints, *look.violations, *board.complaints]
    return (
        f"a run of {after} steps followed for {took:.0f} s without a reload; the board saw another come and go",
        faults,
    )


def graph(browser: Any, url: str, root: Path, shots: Path) -> Told:
    """Select a candidate in the graph by keyboard and open its decision; check that the graph shows a terminal run."""
    faults: list[str] = []
    with looker(browser, url, **SHAPES["dark-wide"]) as look, looker(browser, url, **SHAPES["light-phone"]) as phone:
        look.open(f"{url}/graph/")
        chip = look.page.locator(".across .chip[href*='/decide/production/']").first
        for _ in range(40):
            look.page.keyboard.press("Tab")
            if chip.evaluate("one => one === document.activeElement"):
                break
        look.picture(shots, "graph-focus-dark-wide")
        look.page.keyboard.press("Enter")
        look.page.wait_for_url("**/decide/production/")
        look.open(f"{url}/graph/")
        phone.open(f"{url}/servers/later/")
        look.page.evaluate("window.same = true")  # gone when the page is loaded again
        phone.page.evaluate("window.same = true")
        with subprocess.Popen(
            command("pipeline", "run", "later", "--until", "build", "--force"), cwd=root, stdout=subprocess.DEVNULL
        ) as run:
            look.page.wait_for_selector(".across .chip.busy", timeout=120_000)
            phone.page.wait_for_selector(".down .stage.busy", timeout=120_000)
            look.picture(shots, "graph-running-dark-wide")
            phone.picture(shots, "graph-running-light-phone")
            look.judge()
            run.wait(300)
        for one, what in ((look, ".across .chip.busy"), (phone, ".down .chip.busy")):
            one.page.wait_for_selector(what, state="detached", timeout=60_000)
            if not one.page.evaluate("window.same === true"):
                faults.append(f"{one.page.url} was loaded again")
            faults += one.complaints + one.violations
    return "a candidate by keys; a run came and went in both pictures without a reload", faults


def without_javascript(browser: Any, url: str, root: Path, _shots: Path) -> Told:
    """Check inbox, board, server and run without JavaScript: same texts, and filters and pages by requests."""
    run = next(path for kind, path in _paths(root) if kind == "server_run")
    paths = ("/", "/board/", "/graph/", "/servers/bookshop/", run, run.rsplit("/", 2)[0] + "/")
    faults: list[str] = []
    lines = 0
    with (
        looker(browser, url, **SHAPES["light-wide"]) as on,
        looker(browser, url, **SHAPES["light-wide"], java_script_enabled=False) as off,
    ):
        for path in paths:
            on.open(url + path)
            off.open(url + path)
            shown = _words(off.page.locator("#content").evaluate(_UNTIMED))
            wanted = [line for line in _words(on.page.locator("#content").evaluate(_UNTIMED)) if line not in LIVE]
            faults += [f"{path}: without JavaScript there is no {line!r}" for line in wanted if line not in shown]
            lines += len(wanted)
        off.open(f"{url}/board/?q=")
        off.page.fill("#q", "note")
        off.page.click("button:text-is('Filter')")
        off.page.wait_for_url(re.compile(r"q=note"))
        if off.page.locator("#board tbody tr").count() != 1:
            faults.append("the filter of the board does nothing without JavaScript")
        faults += on.complaints + off.complaints
    return f"{len(paths)} pages, {lines} pieces of text, and the filter", faults


# The text without times, which JavaScript puts into the zone of the reader.
_UNTIMED = """(content) => { const copy = content.cloneNode(true); copy.querySelectorAll("time").forEach((one) => one.remove()); return copy.textContent; }"""
LIVE = {"Live: this page follows what happens."}


def _words(text: str | None) -> list[str]:
    """Return the lines of a text, without waiting times."""
    lines = (re.sub(r", \d+ (s|min|h|d)\b.*", "", line).strip() for line in (text or "").splitlines())
    return [line for line in lines if line]


def exported(browser: Any, _url: str, _root: Path, shots: Path) -> Told:
    """Export this repository's servers, open the site from disk, and check that every link is a file in the folder."""
    folder = shots.parent / "site"
    repository = Path(__file__).resolve().parents[2]
    words = command("dashboard", "--export", str(folder), "--json")
    made = subprocess.run(words, cwd=repository, check=True, capture_output=True, text=True, timeout=300)
    files = json.loads(made.stdout)["files"]
    start = (folder / "index.html").as_uri()
    inside = start.removesuffix("index.html")
    seen, waiting, faults = {start}, [start], []
    with looker(browser, inside, **SHAPES["light-phone"]) as look:
        while waiting:
            look.open(waiting.pop())
            look.judge()
            for href in look.page.eval_on_selector_all(
                "a[href]", "all => all.map((one) => new URL(one.getAttribute('href'), location.href).href)"
            ):
                target = href.partition("#")[0]
                if not target.startswith(inside) or not (folder / target.removeprefix(inside)).is_file():
                    faults.append(f"{look.page.url}: {href} leads to no file of the folder")
                elif target.endswith(".html") and target not in seen:
                    seen.add(target)
                    waiting.append(target)
        faults += look.complaints + look.violations
        pages = sum(name.endswith(".html") for name in files)
        if len(seen) < pages:
            faults.append(f"{pages - len(seen)} of {pages} pages are linked from nowhere")
        return f"{len(seen)} of {pages} pages reached by links, {look.requests} requests, none left the folder", faults


SCENES: dict[str, Callable[[Any, str, Path, Path], Told]] = {
    "visit": visit,
    "long": long_words,
    "act": act,
    "try": attempt,
    "follow": follow,
    "graph": graph,
    "no-javascript": without_javascript,
    "export": exported,
}
