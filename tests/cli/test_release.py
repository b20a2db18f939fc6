"""Releases as a person types them, in a workspace with git and a server that really runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from tests.cli.conftest import InProcessCli

ADA = {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A workspace with the server `notes`, committed and never released; to be copied."""
    folder = apply_setup(plan_workspace_setup(tmp_path_factory.mktemp("release") / "ws")).root
    create_server(folder / "servers", name="notes", template="minimal")
    commit(folder)
    return folder


@pytest.fixture
def shell(made, tmp_path) -> InProcessCli:
    return InProcessCli(shutil.copytree(made, tmp_path / "ws"), ADA)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], check=False, cwd=folder, env={"PATH": "/usr/bin:/bin", **ADA}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "work")


def test_a_server_is_released_and_again_when_its_tools_changed(shell):
    assert shell("release", "note", "notes", "Words by letter", "--kind", "added").out == (
        "wrote servers/notes/changes/words-by-letter.added.md (minor)\n"
    )
    commit(shell.folder)
    first = shell("release", "apply", "--json").data["releases"]
    assert [(one["outcome"], one["tag"]) for one in first] == [("released", "notes-v0.1.0")]
    assert "- Words by letter" in git(shell.folder, "tag", "-n9")
    server = shell.folder / "servers/notes/src/notes_mcp/server.py"
    text = server.read_text()
    assert "def measure_text(" in text
    server.write_text(text.replace("def measure_text(", "def measure_all_of_a_text("))
    commit(shell.folder)
    planned = shell("release", "plan")
    assert planned.code == 0
    assert planned.out.splitlines()[1].split()[:4] == ["notes", "0.1.0", "0.2.0", "major"]
    assert "notes: breaking  tool-removed" in planned.out
    done = shell("release", "apply", "notes")
    assert (done.code, "mcpfactory pipeline run" in done.err, "git push --follow-tags" in done.err) == (0, True, True)
    assert done.out == f"notes 0.2.0: released, notes-v0.2.0 at {git(shell.folder, 'rev-parse', 'HEAD')[:12]}\n"
    assert '__version__ = "0.2.0"' in (server.parent / "__init__.py").read_text()
