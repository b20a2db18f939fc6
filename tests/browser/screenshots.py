"""Pictures of README and docs: `make pictures` writes docs/pictures from real commands and the real dashboard.

Pictures of the dashboard are PNG; pictures of the terminal are SVG with the reader's fonts. They take
some minutes and need Chromium (`python -m tests.browser --install`). Check the changes before you commit: times and
hashes always differ.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tests.browser.browser_install import chromium, provide
from tests.browser.demo_workspace import dashboard, make
from tests.browser.page_audit import looker
from tests.cli.terminal_capture import COLUMNS, run

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
EXAMPLE = ROOT / "docs/examples/bookshop"
_WIDTH = 1280
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
_PLACE = "~/my-servers"  # shown instead of the temporary folder

# What is typed for the picture of a terminal; `mcpfactory` and a line of its own before each.
TYPED = (
    ("new", "--from-openapi", "openapi.yaml", "--name", "bookshop"),
    ("call", "bookshop", "list_books", "--arg", "q=austen", "--arg", "limit=1"),
    ("pipeline", "run"),
    (),
)

# The pages of the dashboard that are shown: name of the picture, path, colour scheme, height.
PAGES = (
    ("inbox-light", "/", "light", 640),
    ("board-light", "/board/", "light", 430),
    ("server-light", "/servers/bookshop/", "light", 740),
    ("server-dark", "/servers/bookshop/", "dark", 740),
)


def main() -> None:
    """Write all pictures."""
    provide(install=False)
    from playwright.sync_api import sync_playwright

    for file in FOLDER.glob("*.png"):
        file.unlink()
    (FOLDER / "terminal.svg").write_text(terminal(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as play:
        root = make(Path(place))
        (FOLDER / "pipeline.svg").write_text(pipeline(root), encoding="utf-8")
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        with dashboard(root) as url:
            browse(browser, url.rstrip("/"))
        browser.close()
    for file in sorted(FOLDER.iterdir()):
        print(f"{file.relative_to(ROOT)} {file.stat().st_size // 1000} kB")


def browse(browser: Any, url: str) -> None:
    """Write a picture of each page without errors."""
    for name, path, scheme, height in PAGES:
        with looker(browser, url, color_scheme=scheme, viewport={"width": _WIDTH, "height": height}) as look:
            look.open(url + path)
            look.page.screenshot(path=str(FOLDER / f"{name}.png"))
            if look.complaints:
                raise SystemExit("\n".join(look.complaints))


def pipeline(root: Path) -> str:
    """Write the pipeline graph of a workspace, as drawn by the command line."""
    done = run(("pipeline", "status", "--graph", "svg"), root, terminal=False)
    if done.code:
        raise SystemExit(f"mcpfactory pipeline status --graph ended with {done.code}")
    return done.text


def terminal() -> str:
    """Write the SVG of a terminal session: create a server, call it, run the pipeline, show the inbox."""
    with tempfile.TemporaryDirectory() as place, _service() as url:
        run(("init", "my-servers"), Path(place), terminal=True)
        folder = Path(place, "my-servers")
        shutil.copyfile(EXAMPLE / "openapi.yaml", folder / "openapi.yaml")
        lines = []
        for words in TYPED:
            done = run(words, folder, terminal=True, MCPFACTORY_BASE_URL=url)
            if done.code:
                raise SystemExit(f"mcpfactory {' '.join(words)} ended with {done.code}\n{done.text}")
            shown = done.text.replace("\r\n", "\n").rpartition("\x1b[2K")[2]  # the last state of a live table
            typed = " ".join(["mcpfactory", *words])
            lines += [f"\x1b[32m$\x1b[0m \x1b[1m{typed}\x1b[0m", shown.replace(str(folder), _PLACE).strip("\n"), ""]
    return draw("\n".join(lines).rstrip())


def draw(text: str) -> str:
    """Return terminal output as SVG, without the font that rich would load from another host."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text))
    picture = console.export_svg(title="mcpfactory", unique_id="mcpfactory")
    picture = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    return re.sub(r"font-family: Fira Code[^;]*;", f"font-family: {_FONTS};", picture).rstrip() + "\n"


@contextmanager
def _service() -> Iterator[str]:
    """Run the example API on a free port; yield its base URL."""
    command = [sys.executable, str(EXAMPLE / "service.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


if __name__ == "__main__":
    main()
