"""Twelve views of the dashboard as people see them, wide and on a phone, light and dark; and beside those of an earlier commit.

    python -m tests.browser.views                      screenshots into build/browser/views
    python -m tests.browser.views --against COMMIT     the same of COMMIT in build/browser/views-before, and a sheet of both for each view
    python -m tests.browser.views --against COMMIT --sheets docs/pictures/views   and puts the sheets there

Each commit is seen by its own dashboard, over a workspace that its own commands made. It takes some minutes and needs chromium.
"""

from __future__ import annotations

import argparse
import base64
import html
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

# An earlier commit runs this file in its own folder, with its own environment: only what has been there from the start is imported.
from tests.browser.shop import TOKEN, command, dashboard, make
from tests.browser.tools import FOLDER, chromium

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"wide": (1440, 900), "phone": (390, 844)}
SCHEMES = ("light", "dark")
_FAILING = '''"""A test that fails after it said much."""


def test_it() -> None:
    for number in range(400):
        print(f"read shelf {number} of 400")
    assert 12 * 30 == 400, "a shelf has 30 books"
'''


class View(NamedTuple):
    """A view: its name, what one does there, and where it is. Of several places the first that is there counts; `PATH > PATTERN` is a link."""

    name: str
    about: str
    places: tuple[str, ...]


VIEWS = (
    View("inbox", "What waits for me?", ("/",)),
    View("board", "Where does every server stand?", ("/board/",)),
    View("server", "What is there to know about one server?", ("/servers/bookshop/",)),
    View(
        "decision",
        "Shall this candidate go to production?",
        (
            "/servers/bookshop/decide/production/",
            "/servers/bookshop/ > /actions/approve/",
            "/servers/bookshop/actions/approve/?channel=production",
        ),
    ),
    View("tools", "What does a model see?", ("/servers/bookshop/tools/",)),
    View("try", "What does a tool answer?", ("/servers/bookshop/tools/list_books/try/",)),
    View("compare", "What changes for callers?", ("/servers/bookshop/ > /compare/",)),
    View("failed", "Why did it fail?", ("/servers/notes/logs/test/", "/runs/ > ^/runs/[^/]+/$ > /runs/[^/]+/notes/")),
    View("runs", "What ran?", ("/runs/",)),
    View("run", "How did a run go?", ("/runs/ > ^/runs/[^/]+/$",)),
    View("trends", "Does it get better?", ("/trends/",)),
    View("rules", "What is demanded?", ("/rules/",)),
)


def main() -> None:
    """Take the screenshots, and make the sheets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=FOLDER / "views", help="where screenshots are put")
    parser.add_argument("--against", metavar="COMMIT", help="an earlier commit, which is seen, too")
    parser.add_argument("--sheets", type=Path, default=FOLDER / "sheets", help="where sheets of both are put")
    asked = parser.parse_args()
    shoot(asked.into)
    if asked.against:
        before = asked.into.with_name(f"{asked.into.name}-before")
        with checkout(asked.against) as place:
            words = [str(place / ".venv/bin/python"), str(Path(__file__).resolve()), "--into", str(before.resolve())]
            subprocess.run(words, cwd=place, env={**os.environ, "PYTHONPATH": str(place)}, check=True)
        for file in sheets(before, asked.into, asked.sheets, asked.against):
            print(f"{file} {file.stat().st_size // 1000} kB")


def shoot(folder: Path) -> None:
    """Write NAME-SIZE-SCHEME.png for each view; of a view that is nowhere, nothing, and a line that says so."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as play:
        root = _workspace(Path(place))
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        with dashboard(root) as url:
            for size, (width, height) in SIZES.items():
                for scheme in SCHEMES:
                    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
                    page = context.new_page()
                    _log_in(page, url.rstrip("/"))
                    for view in VIEWS:
                        if _go(page, url.rstrip("/"), view):
                            page.screenshot(path=str(folder / f"{view.name}-{size}-{scheme}.png"))
                        else:
                            print(f"{view.name}: not there")
                    context.close()
        browser.close()
    print(f"{len(list(folder.glob('*.png')))} screenshots in {folder}")


def _workspace(place: Path) -> Path:
    """Make the shop, in which the tests of one server fail."""
    root = make(place)
    (root / "servers/notes/tests/test_shelves.py").write_text(_FAILING)
    subprocess.run(
        command("pipeline", "run", "notes"), cwd=root, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return root


def _log_in(page: Any, url: str) -> None:
    page.goto(f"{url}/login/")
    page.fill("input[type=password]", TOKEN)
    page.click("main button[type=submit], form:has(input[type=password]) button")


def _go(page: Any, url: str, view: View) -> bool:
    """Open the first place of a view that is there, and say whether one was."""
    for place in view.places:
        path, *patterns = place.split(" > ")
        answer = page.goto(url + path)
        for pattern in patterns:
            links = [link.get_attribute("href") or "" for link in page.query_selector_all("main a[href]")]
            paths = (
                re.sub(r"^https?://[^/]+", "", page.evaluate("href => new URL(href, location).href", link))
                for link in links
            )
            found = next((link for link in paths if re.search(pattern, link)), None)
            answer = page.goto(url + found) if found else None
            if answer is None:
                break
        if answer is not None and answer.status < 400:
            return True
    return False


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit and their environment, which is removed afterwards."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "earlier"
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(folder)], check=True)
        subprocess.run(["git", "checkout", "--quiet", "--detach", commit], cwd=folder, check=True)
        subprocess.run(["make", ".venv/.ready"], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        library = f"playwright=={version('playwright')}"  # an early commit does not ask for it
        uv, python = folder / ".venv/bin/uv", folder / ".venv/bin/python"
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, library], check=True)
        yield folder


def sheets(before: Path, after: Path, into: Path, commit: str) -> Iterator[Path]:
    """Write one picture for each view, before and after in all four shapes, and yield its file."""
    from playwright.sync_api import sync_playwright

    into.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1800, "height": 600})
        for view in VIEWS:
            page.set_content(_sheet(view, before, after, commit))
            page.wait_for_function("[...document.images].every(image => image.complete)")
            file = into / f"{view.name}.jpg"
            page.screenshot(path=str(file), full_page=True, type="jpeg", quality=62)
            yield file
        browser.close()


def _sheet(view: View, before: Path, after: Path, commit: str) -> str:
    rows = "".join(
        f"<h2>{html.escape(title)}</h2><div>"
        + "".join(_picture(folder / f"{view.name}-{size}-{scheme}.png") for scheme in SCHEMES for size in SIZES)
        + "</div>"
        for title, folder in ((f"before ({commit[:8]})", before), ("now", after))
    )
    style = (
        "body{font:18px sans-serif;margin:16px;background:#888;color:#fff}h1,h2{margin:8px 0;font-size:20px}"
        "div{display:flex;gap:12px;align-items:flex-start}img{height:400px}p{height:400px;width:185px;border:1px dashed}"
    )
    return f"<style>{style}</style><h1>{html.escape(view.name)}: {html.escape(view.about)}</h1>{rows}"


def _picture(file: Path) -> str:
    if not file.is_file():
        return "<p>was not there</p>"
    return f'<img src="data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}">'


if __name__ == "__main__":
    main()
