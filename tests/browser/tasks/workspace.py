"""Workspace of the tasks, created once by real commands and restored before each task.

`bookshop` has a candidate in production and another in staging that waits for an approval; `notes` and `drafts` wait
for their first approval; the tests of `torn` fail.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.bench.workspace import make as make_many
from tests.browser.demo_workspace import ROOT, command, run, set_version

MANY = 1000  # servers of the large workspace
_POLICY = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 1
"""
_DOCUMENT = ROOT / "docs/examples/bookshop/openapi.yaml"
_LIMIT = "        - {name: limit, in: query,"
_OFFSET = "        - {name: offset, in: query, description: So many books are left out, schema: {type: integer, minimum: 0}}\n"
TORN_TEST = "servers/torn/tests/test_torn.py"
# The failing line has more lines before it than fit on a screen, and more after it than fit on a page.
_STEPS = "".join(f"    print('step {number} of the sum')\n" for number in range(150))
_TORN = (
    f"def test_that_the_sum_is_right() -> None:\n{_STEPS}    print('line of output\\n' * 400)\n    assert 1 + 1 == 3\n"
)


class Shop:
    """The workspace at `root`, with an unchanged copy next to it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.root, self._kept, self._many = place / "shop", place / "kept", place / "many"

    def make(self) -> None:
        """Create the workspace, which takes minutes; reuse an existing one of the same factory version."""
        if self._kept.is_dir() and not any(item["kind"] == "drift" for item in self.told("inbox", root=self._kept)):
            return
        for folder in (self._kept, self.root):
            shutil.rmtree(folder, ignore_errors=True)
        self._begin()
        self._go_on()
        shutil.copytree(self.root, self._kept, symlinks=True)

    def _begin(self) -> None:
        """Run the pipeline of four servers, and promote one to production."""
        run(self.place, "init", str(self.root), "--factory", "index")
        config = self.root / "mcpfactory.toml"
        config.write_text(config.read_text() + _POLICY)
        run(self.root, "new", "--from-openapi", str(_DOCUMENT), "--name", "bookshop")
        for name in ("notes", "drafts", "torn"):
            run(self.root, "new", name, "--template", "minimal")
        (self.root / TORN_TEST).write_text(_TORN)
        run(self.root, "pipeline", "run", fails=True)
        for verb in ("approve", "promote"):
            run(self.root, "pipeline", verb, "bookshop", "--channel", "production", "--reason", "the first")

    def _go_on(self) -> None:
        """Add an argument to the API of the promoted server."""
        document, text = self.place / "openapi.yaml", _DOCUMENT.read_text()
        assert _LIMIT in text
        document.write_text(text.replace(_LIMIT, _OFFSET + _LIMIT, 1))
        set_version(self.root, "bookshop", "0.2.0")
        run(self.root, "update", "bookshop", "--from-openapi", str(document))
        run(self.root, "pipeline", "run", "bookshop")

    def restore(self) -> None:
        """Restore the original state at the same path, because candidates' environments contain the path."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self._kept, self.root, symlinks=True)

    def many(self) -> Path:
        """Return a workspace with a thousand servers."""
        if not self._many.is_dir():
            make_many(self._many, MANY)
        return self._many

    def told(self, *words: str, root: Path | None = None) -> Any:
        """Return the JSON output of a command."""
        line = command(*words, "--json")
        done = subprocess.run(line, cwd=root or self.root, capture_output=True, text=True, timeout=600, check=False)
        return json.loads(done.stdout)

    def state(self, server: str) -> dict[str, Any]:
        """Return the state of a server from `pipeline status`."""
        found: dict[str, Any] = self.told("pipeline", "status", server)[0]
        return found

    def history(self, server: str) -> list[dict[str, Any]]:
        """Return the events of a server from `pipeline history`."""
        found: list[dict[str, Any]] = self.told("pipeline", "history", server)
        return found

    def decisions(self, server: str) -> list[tuple[str, str]]:
        """Return the decisions about a server, each with its actor."""
        usual = {"stage.finished", "stage.interrupted"}
        return [(one["event"], one["actor"]) for one in self.history(server) if one["event"] not in usual]
