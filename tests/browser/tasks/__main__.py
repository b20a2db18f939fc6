"""Tasks of dashboard users in Chromium: `python -m tests.browser.tasks` prints a line for each task.

    python -m tests.browser.tasks --watch                     slowly in a window, printing each step
    python -m tests.browser.tasks --only approve --only hold  only these tasks
    python -m tests.browser.tasks --keep FOLDER               create the workspace there, or reuse it

Each task starts at the front page of a real dashboard, uses only visible elements, and ends with a check on the command
line. The exit code is 1 if a task fails; its screenshots are in build/browser/tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.browser.browser_install import FOLDER, chromium, provide
from tests.browser.demo_workspace import dashboard
from tests.browser.tasks.person import Setting, setting
from tests.browser.tasks.table import TASKS, DashboardTask
from tests.browser.tasks.workspace import Shop

_SLOWLY = 600  # milliseconds between steps with --watch
_PICTURES = FOLDER / "tasks"
_LAST = 6  # printed steps of a failed task


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Result of a task. `problem` is empty on success; `pictures` are the screenshots."""

    name: str
    about: str
    seconds: float
    problem: str
    steps: tuple[str, ...]
    pictures: tuple[str, ...]

    @property
    def line(self) -> str:
        """Return the result in one line; for a failed task, add the reason, the last steps and the screenshots."""
        more = ""
        if self.problem:
            steps = "; ".join(self.steps[-_LAST:])
            more = f"\n    {self.problem}\n    last: {steps}\n    screens: {', '.join(self.pictures)}"
        return f"{self.name:14} {'FAILED' if self.problem else 'ok':6} {self.seconds:6.1f} s  {self.about}{more}"


def perform(name: str, task: DashboardTask, shop: Shop, browser: Any, tell: Callable[[str], None]) -> TaskResult:
    """Carry out one task in a separate dashboard."""
    root = shop.many() if task.many else shop.root
    if not task.many:
        shop.restore()
    began = time.monotonic()
    with dashboard(root) as url, setting(shop, browser, url.rstrip("/"), tell) as at:
        problem, pictures = "", []
        try:
            task.act(at)
            if complaints := [one for person in at.people for one in person.complaints()]:
                problem = f"the browser complains: {complaints[0]}"
        except Exception as error:  # noqa: BLE001 - the other tasks must still run
            problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no words'}"
        if problem:
            pictures = _pictures(name, at)
        steps = tuple(step for person in at.people for step in person.steps)
    return TaskResult(name, task.about, round(time.monotonic() - began, 1), problem, steps, tuple(pictures))


def _pictures(name: str, at: Setting) -> list[str]:
    """Save a screenshot of each person's browser."""
    found = []
    for number, person in enumerate(at.people, 1):
        _PICTURES.mkdir(parents=True, exist_ok=True)
        file = _PICTURES / f"{name}-{person.name or 'somebody'}-{number}.png"
        person.page.screenshot(path=str(file))
        found.append(os.path.relpath(file))
    return found


def main() -> None:
    """Run all tasks, or the named ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", choices=list(TASKS), help=", ".join(TASKS))
    parser.add_argument("--watch", action="store_true", help="in a window, slowly, with every step")
    parser.add_argument("--json", action="store_true", help="the results as JSON, with every step")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the workspace, for the next time")
    asked = parser.parse_args()
    if asked.watch and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        parser.error("there is no screen for a window; hint: xvfb-run, or leave --watch out")
    provide(install=False)
    from playwright.sync_api import sync_playwright

    shutil.rmtree(_PICTURES, ignore_errors=True)
    _PICTURES.mkdir(parents=True)
    say = (lambda _line: None) if asked.json else (lambda line: print(line, flush=True))
    results = []
    with (
        nullcontext(str(asked.keep)) if asked.keep else tempfile.TemporaryDirectory() as place,
        sync_playwright() as play,
    ):
        folder = Path(place).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        shop = Shop(folder)
        shop.make()
        browser = play.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"],
            headless=not asked.watch, slow_mo=_SLOWLY if asked.watch else 0,
        )  # fmt: skip
        for name in asked.only or TASKS:
            if asked.watch:
                say(f"{name}: a person {TASKS[name].about}")
            tell = (lambda step: say(f"    {step}")) if asked.watch else (lambda _step: None)
            results.append(perform(name, TASKS[name], shop, browser, tell))
            say(results[-1].line)
        browser.close()
    failed = sum(bool(one.problem) for one in results)
    if asked.json:
        print(json.dumps([asdict(one) for one in results], indent=1))
    say(f"{len(results) - failed} of {len(results)} tasks done")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
