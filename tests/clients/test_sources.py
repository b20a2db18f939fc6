"""What an entry starts is ours: whatever other indexes have under the same names, and whatever becomes of the channel."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.build.factory_distributions import RUNTIME
from mcpfactory_pipeline.build.wheels import wheel_name
from mcpfactory_pipeline.channels.channel import copy_files_into_channel, withdraw_project
from tests.cli.conftest import CommandResult, InProcessCli
from tests.publish.package_index import TOKEN, Index, serving
from tests.publish.promoted_workspace import PromotedWorkspace, packages
from tests.timeouts import TIMEOUT

PYPROJECT = '[project]\nname = "books-mcp"\nversion = "9.9"\n[project.scripts]\nbooks-mcp = "books_mcp:main"\n'
OURS = b'import mcpfactory_runtime\ndef main():\n    print("our server", "on", mcpfactory_runtime.WHOSE)\n'
THEIRS = b'def main():\n    print("their server")\n'


class InstallFixture:
    """A workspace with the server `books`, a person's home folder, and the command line in it."""

    def __init__(self, root: Path, index: Index) -> None:
        self.shelf, self.home, self.index = PromotedWorkspace(root / "ws"), root / "home", index
        self.home.mkdir()
        self.root = self.shelf.workspace.root
        (self.root / "servers/books/pyproject.toml").write_text(PYPROJECT)
        self.shelf.configure(index.settings)

    def __call__(self, *command: str, **environ: str) -> CommandResult:
        unset = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"), "")
        return InProcessCli(self.root, {**unset, "HOME": str(self.home), "PYPI_TOKEN": TOKEN, **environ})(*command)

    def install(self, *options: str) -> CommandResult:
        return self("install", "books", "-c", "claude-code", *options)

    @property
    def entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = json.loads((self.home / ".claude.json").read_text())["mcpServers"]["books"]
        return entry

    def offer(self, channel: str = "staging") -> None:
        """A candidate of the server in a channel, with the runtime that it needs."""
        candidate = self.shelf.put(channel=channel, requires=(f"{RUNTIME}>=0.1",), code=OURS)
        folder = self.shelf.workspace.artifacts / "books" / candidate
        wheel = next(folder.glob("*.whl"))
        runtime = self.home.parent / "ours" / f"{RUNTIME.replace('-', '_')}-0.1.0-py3-none-any.whl"
        runtime.parent.mkdir(exist_ok=True)
        runtime.write_bytes(a_runtime("0.1.0", "our runtime"))
        copy_files_into_channel(self.channels, channel, wheel, hash_bytes(wheel.read_bytes()), [runtime])

    @property
    def channels(self) -> Path:
        return self.root / "pipeline/channels"

    def started(self, **others: str) -> str:
        """What the entry prints, started as a client with the PATH of a desktop and an empty home folder starts it."""
        bare = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "UV_CACHE_DIR": str(self.home / "cache")}
        bare |= {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never", **others}
        command = [self.entry["command"], *self.entry["args"]]
        done = subprocess.run(
            command, env=bare, cwd=self.home, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        return done.stdout.strip() or done.stderr.strip()


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[InstallFixture]:
    with serving() as index:
        yield InstallFixture(tmp_path, index)


def a_runtime(version: str, whose: str) -> bytes:
    """A wheel of the name of our runtime."""
    code = f'WHOSE = "{whose}"\n'.encode()
    files = packages(version, name=RUNTIME, code=code, package="mcpfactory_runtime", sdist=False)
    return next(iter(files.values()))


def strangers(folder: Path) -> str:
    """The URL of an index where strangers have our names: in our version, and in higher ones."""
    wheels: dict[str, bytes] = {}
    for version in ("1.0.0", "99.0.0"):
        wheels |= packages(version, code=THEIRS, sdist=False)
        wheels[f"{RUNTIME.replace('-', '_')}-{version}-py3-none-any.whl"] = a_runtime(version, "their runtime")
    pages: dict[str, list[str]] = {}
    folder.mkdir()
    for name, data in wheels.items():
        (folder / name).write_bytes(data)
        link = f'<a href="../{name}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>'
        pages.setdefault(wheel_name(name), []).append(link)
    for project, links in pages.items():
        (folder / project).mkdir()
        (folder / project / "index.html").write_text("<!DOCTYPE html>" + "".join(links))
    return folder.as_uri()


def others(url: str, folder: Path) -> Iterator[Mapping[str, str]]:
    """The ways in which a machine may be set to find packages of strangers."""
    yield {"UV_DEFAULT_INDEX": url}
    yield {"UV_INDEX": url, "UV_DEFAULT_INDEX": url, "UV_INDEX_STRATEGY": "unsafe-best-match"}
    yield {"UV_FIND_LINKS": str(folder), "UV_DEFAULT_INDEX": url}


def test_a_channels_entry_starts_ours_whatever_other_indexes_have(installation, tmp_path):
    installation.offer()
    assert installation.install().code == 0
    theirs = strangers(tmp_path / "theirs")
    check = subprocess.run(
        [str(Path(sys.executable).parent / "uvx"), "books-mcp==1.0.0"], capture_output=True, text=True, check=False,
        env={**os.environ, "UV_DEFAULT_INDEX": theirs, "UV_CACHE_DIR": str(tmp_path / "c"), "UV_PYTHON": sys.executable},
    )  # fmt: skip
    assert check.stdout.strip() == "their server"  # whoever goes by the name gets it
    for settings in others(theirs, tmp_path / "theirs"):
        assert installation.started(**settings) == "our server on our runtime"


def test_a_link_to_the_factory_on_the_path_is_what_entries_name(installation, tmp_path):
    link = tmp_path / "bin/mcpfactory"
    link.parent.mkdir()
    link.symlink_to(Path(sys.executable).parent / "mcpfactory")
    done = installation("install", "books", "-c", "claude-code", PATH=f"{link.parent}{os.pathsep}{os.environ['PATH']}")
    assert done.code == 0, done.err
    assert installation.entry["command"] == str(link)


def test_a_server_that_left_the_channel_is_not_looked_for_elsewhere(installation, tmp_path):
    installation.offer()
    installation.install()
    withdraw_project(installation.channels, "staging", "books-mcp")
    for wheel in installation.channels.glob("staging/files/*/books_mcp-*"):
        wheel.unlink()
    said = installation.started(UV_DEFAULT_INDEX=strangers(tmp_path / "theirs"))
    assert "their server" not in said
    assert "books_mcp-1.0.0" in said


def test_a_channel_without_the_runtime_is_refused(installation):
    candidate = installation.shelf.put(channel="staging", requires=(f"{RUNTIME}>=0.1",))
    wheel = next((installation.shelf.workspace.artifacts / "books" / candidate).glob("*.whl"))
    copy_files_into_channel(installation.channels, "staging", wheel, hash_bytes(wheel.read_bytes()))
    done = installation.install()
    assert done.code == 4
    assert "does not contain the runtime" in done.err
    assert not (installation.home / ".claude.json").exists()


def test_a_name_that_nobody_published_is_not_written(installation):
    never = installation.install("--from", "index")
    assert (never.code, "neither published nor promoted" in never.err) == (4, True)

    installation.shelf.put()
    absent = installation.install("--from", "index")
    assert (absent.code, "someone else could publish this version" in absent.err) == (4, True)
    assert "mcpfactory publish books --target pypi" in absent.err
    assert not (installation.home / ".claude.json").exists()


def test_an_index_that_has_the_promoted_bytes_is_believed_and_named(installation):
    promoted = installation.shelf.workspace.artifacts / "books" / installation.shelf.put()
    installation.index.files |= {file.name: file.read_bytes() for file in promoted.iterdir() if file.is_file()}
    assert installation.install("--from", "index").code == 0
    where = ["--index", f"{installation.index.url}/simple/", "--index-strategy", "first-index"]
    assert installation.entry["args"] == [*where, "books-mcp==1.0.0"]
    assert Path(installation.entry["command"]).is_absolute()


def test_an_entry_with_a_name_that_nobody_published_is_told(installation):
    installation.shelf.put()
    (installation.home / ".claude.json").write_text(
        json.dumps({"mcpServers": {"books": {"command": "uvx", "args": ["books-mcp==1.0.0"]}}})
    )
    done = installation("install")
    assert done.code == 1
    assert "it could be a stranger's" in done.out


def test_a_name_that_another_has_is_not_written(installation):
    installation.shelf.put()
    installation.index.files |= packages("1.0.0", code=THEIRS)
    done = installation.install("--from", "index")
    assert (done.code, "books-mcp on the index is not from this workspace" in done.err) == (4, True)
    assert not (installation.home / ".claude.json").exists()


def test_an_index_that_cannot_be_asked_is_not_believed(installation):
    installation.shelf.put()
    installation.shelf.configure('[publish.pypi]\nindex = "http://127.0.0.1:9/simple/"\n')
    done = installation.install("--from", "index")
    assert (done.code, "the origin of books-mcp cannot be checked" in done.err) == (4, True)
    assert not (installation.home / ".claude.json").exists()
