"""The field of an attempt: a copy of a workspace whose servers went all the way, and the commands that are typed there.

In it `alpha` has an older candidate in production and a newer one in staging that nobody approved; `beta` has one candidate in
both. Everything is committed, as a person would.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.trials.fake_stages import environment
from mcpfactory_pipeline.base.ids import new_id

_CONFIG = """\
[workspace]
name = "workspace"
[pipeline]
backoff = 0
attempts = 1
{more}
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 1
"""
_QUIET = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
_GIT = {**_QUIET, "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}


@dataclass(frozen=True, slots=True)
class Done:
    """A command that came to its end."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything that it printed."""
        return self.out + self.err


@dataclass(slots=True)
class AttackedWorkspace:
    """A workspace to attack; `typed` collects the commands."""

    root: Path
    typed: list[str] = field(default_factory=list)

    def run(self, *words: str, by: str = "Ada", cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
        """Types `mcpfactory …` as somebody, with more variables, in a process of its own."""
        variables = {**os.environ, **environment(), "MCPFACTORY_ACTOR": by, **(env or {})}
        done = subprocess.run(
            [sys.executable, "-m", "mcpfactory", *words],
            cwd=cwd or self.root,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        said = next((line for line in (done.stderr or done.stdout).splitlines() if line.strip()), "")
        self.typed.append(f"mcpfactory {' '.join(words)} → {done.returncode}: {said[:160]}")
        return Done(done.returncode, done.stdout, done.stderr)

    def git(self, *words: str) -> str:
        """Runs git in the workspace."""
        done = subprocess.run(
            ["git", *words], cwd=self.root, env={**os.environ, **_GIT}, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def configure(self, more: str = "", **changes: str) -> None:
        """Writes the workspace's configuration with more of `[pipeline]`, and lines changed (`approvals=\"2\"`)."""
        text = _CONFIG.format(more=more)
        for key, value in changes.items():
            text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
        (self.root / "mcpfactory.toml").write_text(text)

    def server(self, name: str = "alpha") -> Path:
        """The folder of a server."""
        return self.root / "servers" / name

    def edit(self, path: Path, old: str, new: str) -> None:
        """Puts other text in the place of some that must be there."""
        text = path.read_text()
        assert old in text, f"{path.name} has no {old!r}"
        path.write_text(text.replace(old, new))

    def code(self, name: str = "alpha") -> Path:
        """The module of a server in which its tools are."""
        return self.server(name) / "src" / f"{name}_mcp" / "server.py"

    # --- state and history ---

    def history(self, name: str = "alpha") -> Path:
        """The file of a server's history."""
        return self.root / "pipeline/history" / f"{name}.jsonl"

    def state(self, name: str = "alpha") -> Path:
        """The file of a server's state."""
        return self.root / "pipeline/state" / f"{name}.json"

    def events(self, name: str = "alpha") -> list[dict[str, Any]]:
        """The events of a history, in the order of the file."""
        file = self.history(name)
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def write_events(self, events: Sequence[Mapping[str, Any]], name: str = "alpha") -> None:
        """Writes a history anew."""
        self.history(name).write_text("".join(json.dumps(event, sort_keys=True) + "\n" for event in events))

    def forge(self, name: str = "alpha", **members: Any) -> None:
        """Adds an event to a history by hand."""
        self.write_events([*self.events(name), self.event(name, **members)], name)

    def event(self, name: str = "alpha", **members: Any) -> dict[str, Any]:
        """An event as the last one of the history would be, with other members."""
        last = self.events(name)[-1]
        return {"id": new_id(), "at": last["at"], "actor": "Grace", **members}

    def change_state(self, name: str = "alpha") -> dict[str, Any]:
        """The state as data, to be changed and written with `write_state`."""
        return json.loads(self.state(name).read_text())  # type: ignore[no-any-return]

    def write_state(self, state: Mapping[str, Any], name: str = "alpha") -> None:
        """Writes a state by hand, in the form that the factory writes."""
        self.state(name).write_text(json.dumps(state, indent=2, sort_keys=True) + "\n")

    def count(self, kind: str, name: str = "alpha") -> int:
        """How many events of a kind the history has."""
        return sum(event["event"] == kind for event in self.events(name))

    # --- what channels offer ---

    def offered(self, channel: str = "production", name: str = "alpha") -> str | None:
        """The candidate that the state says a channel offers."""
        if not self.state(name).exists():
            return None
        shown = json.loads(self.state(name).read_text()).get("channels", {}).get(channel)
        return shown["candidate"] if shown else None

    def served(self, channel: str = "production", project: str = "alpha-mcp") -> set[str]:
        """The hashes that a channel's page of a project names."""
        page = self.root / "pipeline/channels" / channel / "simple" / project / "index.html"
        return set(re.findall(r"#sha256=([0-9a-f]{64})", page.read_text())) if page.exists() else set()

    def wheel(self, channel: str = "production", name: str = "alpha") -> Path:
        """The wheel of a server that a channel serves."""
        page = self.root / "pipeline/channels" / channel / "simple" / f"{name}-mcp" / "index.html"
        target = next(one for one in re.findall(r'href="([^"#]+)#', page.read_text()) if one.endswith(".whl"))
        return Path((page.parent / target).resolve())

    @property
    def old(self) -> str:
        """The candidate of alpha that production offers in the beginning."""
        return str(self.events()[_built(self.events())[0]]["candidate"])

    @property
    def new(self) -> str:
        """The candidate of alpha that staging offers in the beginning."""
        return str(self.events()[_built(self.events())[1]]["candidate"])


def _built(events: Sequence[Mapping[str, Any]]) -> list[int]:
    return [at for at, event in enumerate(events) if event.get("built")]


def make_origin(root: Path) -> Path:
    """The workspace that every attempt gets a copy of: made by the commands that a person types, with real stages."""
    made = AttackedWorkspace(root)
    steps: list[tuple[str, ...]] = [("new", "alpha", "--template", "minimal"), ("new", "beta", "--template", "minimal")]
    _typed(made, "init", str(root), cwd=root.parent)
    made.configure()
    for words in steps:
        _typed(made, *words)
    made.git("init", "-q", "-b", "main") if not (root / ".git").exists() else None
    _commit(made, "Two servers")
    _typed(made, "pipeline", "run")
    for name in ("alpha", "beta"):
        _typed(made, "pipeline", "approve", name, by="Grace")
        _typed(made, "pipeline", "promote", name, "--channel", "production")
    _commit(made, "In production")
    made.edit(made.code(), "estimate how long it takes to read", "estimate the reading time")
    made.edit(made.code().with_name("__init__.py"), "0.1.0", "0.1.1")
    _typed(made, "pipeline", "run", "alpha")
    _commit(made, "A newer alpha")
    for made_for_it in (root / "pipeline/artifacts").glob("*/*/environments"):
        shutil.rmtree(made_for_it)  # made anew where a stage needs one, so that copies are small
    return root


def _typed(made: AttackedWorkspace, *words: str, by: str = "Ada", cwd: Path | None = None) -> None:
    done = made.run(*words, by=by, cwd=cwd)
    assert done.code == 0, f"{words}: {done.text}"


def _commit(made: AttackedWorkspace, words: str) -> None:
    made.git("add", "-A")
    made.git("commit", "-qm", words)
