"""A project that was written with the official SDK is adopted as one of the runtime: shown, compared as it would be installed, and written."""

from __future__ import annotations

import json
import zipfile

import pytest

from tests.adoption.conftest import done, put, state
from tests.patience import PATIENCE

pytestmark = pytest.mark.xdist_group("adopted_as_runtime")

PROJECT = """[project]
name = "acme-notes"
version = "0.3.0"
description = "Notes."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["mcp>=2,<3"]
scripts = { acme-notes = "acme_notes:main" }

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
"""
SERVER = '''\
"""Notes."""

import os

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

mcp = MCPServer("notes")
NOTES = ["one", "two"]


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def search(text: str) -> list[str]:
    """Find notes that have a text."""
    return [note for note in NOTES if text in note]


@mcp.tool()
def add_note(text: str) -> int:
    """Keep a note."""
    NOTES.append(text)
    return len(NOTES)


def main() -> None:
    os.environ.get("NOTES_TOKEN")
    mcp.run()
'''
TEST = 'from acme_notes import search\n\n\ndef test_search():\n    assert search("on") == ["one"]\n'
OTHER = SERVER.replace("for note in NOTES if text in note", "for note in [type(mcp).__name__]")


@pytest.fixture
def desk(space):
    """The workspace, with the machine's own cache of packages: they come from the index."""
    del space.environ["UV_CACHE_DIR"]
    return space


def project(desk, server: str = SERVER):
    files = {
        "pyproject.toml": PROJECT,
        "README.md": "# Notes\n",
        "src/acme_notes/__init__.py": server,
        "tests/test_notes.py": TEST,
    }
    return put(desk.folder / "apps/notes", files)


def adopt(desk, *words: str):
    return desk("adopt", "apps/notes", "--as", "runtime", "--timeout", str(PATIENCE), *words)


def test_it_is_shown_first_then_compared_written_tested_and_started(desk):
    place = project(desk)
    shown = adopt(desk, "--dry-run")
    assert (shown.code, "+mcp = Server(" in shown.out, '+dependencies = ["mcpfactory-runtime>=' in shown.out) == (
        0,
        True,
        True,
    )
    assert adopt(desk).code == 2
    assert (place / "src/acme_notes/__init__.py").read_text() == SERVER
    calls = desk.folder / "calls.json"
    calls.write_text(json.dumps([{"tool": "add_note", "arguments": {"text": "three"}}]))
    found = adopt(desk, "--yes", "--json", "--calls", str(calls))
    assert found.code == 0, found.err
    assert (found.data["compared"]["verdict"], found.data["compared"]["unshown"]) == ("callers see the same", [])
    assert "apps/notes/pyproject.toml" in found.data["written"]
    assert "from mcpfactory_runtime import Server" in (place / "src/acme_notes/__init__.py").read_text()
    lock = (desk.folder / "servers/acme-notes/requirements.lock").read_text()
    assert ("\nmcpfactory-runtime==" in lock, "\nmcp==" in lock) == (True, False)
    done(desk, "pipeline", "run", "acme-notes", "--until", "test")
    assert state(desk, "acme-notes")["stages"]["test"]["message"] == "1 passed (JUnit)"
    assert json.loads(done(desk, "call", "acme-notes", "search", "--arg", "text=on")) == ["one"]
    assert "is adopted as it is already" in done(desk, "adopt", "apps/notes", "--yes")
    assert adopt(desk, "--yes").code == 4
    _is_published_as_what_was_checked(desk)


def _is_published_as_what_was_checked(desk):
    done(desk, "pipeline", "run", "acme-notes")
    done(desk, "pipeline", "approve", "acme-notes", "--channel", "production")
    done(desk, "pipeline", "promote", "acme-notes", "--channel", "production")
    done(desk, "publish", "acme-notes", "--target", "pypi", "--target", "oci", "--target", "sbom", "--check")
    done(desk, "publish", "acme-notes", "--target", "mcpb")
    candidate = desk.folder / "pipeline/artifacts/acme-notes" / state(desk, "acme-notes")["candidate"]
    with zipfile.ZipFile(next(candidate.glob("publish/mcpb/*.mcpb"))) as bundle:
        names = {name.removeprefix("wheels/") for name in bundle.namelist() if name.startswith("wheels/")}
        assert [name.split("-")[0] for name in sorted(names)] == ["acme_notes", "mcpfactory_runtime"]
        assert all(bundle.read(f"wheels/{name}") == (candidate / name).read_bytes() for name in names)
        manifest = json.loads(bundle.read("manifest.json"))
    assert {tool["name"] for tool in manifest["tools"]} == {"search", "add_note"}
    assert list(manifest["user_config"]) == ["notes_token"]


def test_nothing_is_built_before_a_yes(desk, tmp_path):
    place = project(desk)
    evil = f'open("{tmp_path}/ran", "w").close()\nfrom setuptools import setup\nsetup(name="evil", version="1.0", py_modules=[])\n'
    put(tmp_path / "evil", {"setup.py": evil})
    (place / "pyproject.toml").write_text(
        PROJECT.replace('"mcp>=2,<3"', f'"mcp>=2,<3", "evil @ file://{tmp_path}/evil"')
    )
    found = adopt(desk, "--dry-run")
    assert (found.code, f"there is no wheel of evil @ file://{tmp_path}/evil" in found.err) == (1, True), found.err
    assert not (tmp_path / "ran").exists()


def test_what_callers_would_notice_is_not_written_unless_somebody_says_so(desk):
    place = project(desk, OTHER)
    found = adopt(desk, "--yes")
    assert (found.code, "callers would notice" in found.out) == (1, True)
    assert "callers see the same" not in found.out
    assert (place / "src/acme_notes/__init__.py").read_text() == OTHER
    assert not (desk.folder / "servers/acme-notes").exists()
    assert adopt(desk, "--yes", "--unproven").code == 0
    assert (desk.folder / "servers/acme-notes/mcpfactory.toml").is_file()


def test_a_server_that_cannot_be_asked_is_not_said_to_be_equal(desk):
    project(desk, SERVER.replace("mcp = ", "raise SystemExit\nmcp = "))
    found = adopt(desk, "--yes")
    assert (found.code, "nothing was compared: the original could not be asked" in found.err) == (1, True)
    assert "same" not in found.out
    assert not (desk.folder / "servers/acme-notes").exists()


@pytest.mark.parametrize(
    ("server", "words", "code", "says"),
    [
        (SERVER.replace('"notes")', '"notes", extensions=[])'), (), 1, "MCPServer(extensions=…)"),
        ("import os\n", (), 4, "imports FastMCP or the official SDK"),
        ("def f(:\n", (), 4, "cannot be migrated"),
        (SERVER, ("--as", "other"), 2, "no form of a server"),
    ],
)
def test_what_cannot_become_one_is_refused_and_nothing_is_written(desk, server, words, code, says):
    place = project(desk, server)
    found = adopt(desk, "--yes", *words)
    assert (found.code, says in found.out + found.err, "hint:" in found.err) == (code, True, True)
    assert (place / "src/acme_notes/__init__.py").read_text() == server
    assert not (desk.folder / "servers/acme-notes").exists()


def test_a_package_or_a_program_is_adopted_as_it_is_alone(desk):
    assert desk("adopt", "pypi:acme-notes", "--as", "runtime", "--yes").code == 1
