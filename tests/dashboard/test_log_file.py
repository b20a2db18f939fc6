"""Only a regular file of its own is a log: no pipe is waited for, and no link is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.live_updates import read_log_tail
from mcpfactory_pipeline.dashboard.workspace_files import read_log
from mcpfactory_pipeline.views import status
from tests.dashboard.conftest import WorkspaceBuilder

PATH = "/servers/atlas/logs/test/"
SECRET = "not of this workspace"


def fifo(file: Path, _secret: Path) -> None:
    os.mkfifo(file)


def link(file: Path, secret: Path) -> None:
    file.symlink_to(secret)


def linked_folder(file: Path, secret: Path) -> None:
    secret.with_name("test.log").write_text(SECRET)
    file.parent.rmdir()
    file.parent.symlink_to(secret.parent)


@pytest.mark.parametrize("made", [fifo, link, linked_folder])
def test_what_is_no_file_of_its_own_is_not_shown(four_servers: WorkspaceBuilder, tmp_path: Path, made) -> None:  # type: ignore[no-untyped-def] # one of three
    file = four_servers.workspace.artifacts / "atlas" / "logs" / "test.log"
    file.parent.mkdir(parents=True)
    (tmp_path / "away").mkdir()
    secret = tmp_path / "away" / "secret"
    secret.write_text(SECRET)
    made(file, secret)
    client = TestClient(create_app(four_servers.root), base_url="http://127.0.0.1")
    for path in (PATH, f"{PATH}raw"):
        answer = client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 404, path
        assert SECRET not in answer.text
        assert "logs/test.log from the artifacts" in answer.text
    assert read_log(file) == ""
    assert read_log_tail("atlas/test/1", file).text == b""
    with pytest.raises(NotFoundError):
        status.read_log(four_servers.workspace, "atlas", "test")
