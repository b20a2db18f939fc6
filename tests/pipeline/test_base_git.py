"""git commands of ours run nothing of a folder that somebody else made."""

from __future__ import annotations

import http.server
import subprocess
import threading
from pathlib import Path

import pytest

from mcpfactory_pipeline.base import git as base_git
from mcpfactory_pipeline.base.files import write_temporary
from mcpfactory_pipeline.base.git import git_output, git_text


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "a.txt").write_text("a")
    return root


def test_files_that_look_like_a_repository_are_none(workspace: Path, tmp_path: Path) -> None:
    """A folder with HEAD, objects and refs is a repository to git, with a configuration that names programs."""
    marker, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    trap = workspace / "servers/lazy"
    for file in ("objects/keep", "refs/keep"):
        (trap / file).parent.mkdir(parents=True)
        (trap / file).touch()
    (trap / "HEAD").write_text("1" * 40 + "\n")
    (trap / "config").write_text(
        "[core]\nrepositoryformatversion = 1\nbare = false\nworktree = .\n"
        f"fsmonitor = {program}\nsshCommand = {program}\n"
        "[extensions]\npartialClone = o\n"
        '[remote "o"]\nurl = ssh://x/y\npromisor = true\n'
    )
    subprocess.run(["git", "status", "--short"], cwd=trap, capture_output=True, check=False)
    assert marker.exists(), "git itself falls for it: the trap is one"
    marker.unlink()
    for command in (("status", "--porcelain", "--", "."), ("rev-parse", "HEAD"), ("show", "HEAD:./a"), ("log", "-1")):
        git_output(trap, *command)
    assert not marker.exists()
    assert "a.txt" in git_text(workspace, "status", "--porcelain", "--", "a.txt")


def test_a_file_for_its_owner_alone_is_so_before_its_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    real = Path.chmod
    monkeypatch.setattr(Path, "chmod", lambda file, mode: modes.append(file.stat().st_mode & 0o777) or real(file, mode))
    assert write_temporary(tmp_path / "a", b"secret", mode=0o600).stat().st_mode & 0o777 == 0o600
    assert write_temporary(tmp_path / "b", b"text", mode=0o644).stat().st_mode & 0o777 == 0o644
    assert [mode & 0o077 for mode in modes] == [0, 0]


def programs(workspace: Path, program: Path) -> None:
    """A repository whose own configuration names a program in every place that `show`, `status`, `log` and `archive` look at."""
    subprocess.run(["git", "add", "."], cwd=workspace, check=True)
    me = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *me, "commit", "-qm", "a"], cwd=workspace, check=True)
    (workspace / ".gitattributes").write_text("*.txt filter=a=b diff=x\n")
    (workspace / "a.txt").write_text("b")
    with (workspace / ".git/included").open("w") as file:
        file.write(f'[filter "a=b"]\nclean = {program}\nsmudge = {program}\nrequired = true\n')
        file.write(f'[diff "x"]\ntextconv = {program}\ncommand = {program}\n')
    with (workspace / ".git/config").open("a") as file:
        file.write("[include]\npath = included\n")


@pytest.mark.parametrize(
    "arguments",
    [("status", "--porcelain", "--", "."), ("diff", "--textconv", "--no-ext-diff"), ("archive", "--worktree-attributes", "--format=tar", "HEAD")],
    ids=["status", "diff", "archive"],
)  # fmt: skip
def test_programs_of_a_repositorys_own_configuration_do_not_run(workspace, tmp_path, arguments) -> None:
    marker, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    program.chmod(0o755)
    programs(workspace, program)
    assert git_output(workspace, *arguments)
    assert not marker.exists()
    subprocess.run(["git", *arguments], cwd=workspace, capture_output=True, check=False)
    assert marker.exists(), "git itself runs it: the trap is one"


@pytest.mark.parametrize(
    "settings",
    [
        '[protocol "ext"]\nallow = always\n[remote "o"]\nurl = "ext::touch {marker}"\n',
        '[protocol]\nallow = always\n[remote "o"]\nurl = "ext::touch {marker}"\n',
        '[core]\nsshCommand = {program}\n[remote "o"]\nurl = ssh://localhost:1/y\n',
        '[core]\ngitProxy = {program}\n[remote "o"]\nurl = git://localhost:1/y\n',
        '[remote "o"]\nurl = .\nuploadpack = {program}\n',
    ],
    ids=["ext", "every protocol", "ssh", "proxy", "upload-pack"],
)
def test_objects_that_are_missing_are_not_fetched_by_a_command_of_the_configuration(
    workspace, tmp_path, settings
) -> None:
    marker, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    with (workspace / ".git/config").open("a") as file:
        file.write('[extensions]\npartialClone = o\n[remote "o"]\npromisor = true\n')
        file.write(settings.format(marker=marker, program=program))
    missing = ("show", "1" * 40)
    assert git_output(workspace, *missing) is None
    assert not marker.exists()
    subprocess.run(["git", *missing], cwd=workspace, capture_output=True, check=False)
    assert marker.exists(), "git itself runs it: the trap is one"


@pytest.mark.parametrize(("permitted", "asked"), [(None, True), ("https:file", False)])
def test_objects_that_are_missing_are_fetched_over_http_where_the_user_permits_it(
    workspace, monkeypatch, permitted, asked
) -> None:
    """As in a clone with `--filter=blob:none`."""
    seen: list[str] = []

    class Forge(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_error(404)

        def log_message(self, *_words: object) -> None:
            pass

    monkeypatch.delenv("GIT_ALLOW_PROTOCOL", raising=False)
    if permitted:
        monkeypatch.setenv("GIT_ALLOW_PROTOCOL", permitted)
    with http.server.HTTPServer(("127.0.0.1", 0), Forge) as server:
        with (workspace / ".git/config").open("a") as file:
            file.write('[extensions]\npartialClone = o\n[remote "o"]\npromisor = true\n')
            file.write(f"url = http://127.0.0.1:{server.server_port}/a\n")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        assert git_output(workspace, "show", "1" * 40) is None
        server.shutdown()
        thread.join()
    assert bool(seen) == asked


def test_programs_of_the_configuration_of_a_repository_inside_do_not_run(workspace, tmp_path) -> None:
    """git status runs itself in there."""
    marker, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    program.chmod(0o755)
    inside = workspace / "inside"
    inside.mkdir()
    subprocess.run(["git", "init", "-q", str(inside)], check=True)
    (inside / "a.txt").write_text("a")
    programs(inside, program)
    subprocess.run(["git", "add", "inside"], cwd=workspace, capture_output=True, check=True)
    assert git_text(workspace, "status", "--porcelain", "--", "inside") == "A  inside"
    assert not marker.exists()
    subprocess.run(["git", "status"], cwd=workspace, capture_output=True, check=False)
    assert marker.exists(), "git itself runs it: the trap is one"


def test_where_nobody_knows_what_the_configuration_names_nothing_runs(workspace, monkeypatch) -> None:
    monkeypatch.setattr(
        base_git, "_git", lambda _folder, _environ, command, *_: None if command == "config" else b"ran"
    )
    assert git_output(workspace, "status") is None


def test_filters_of_the_users_configuration_run(workspace, tmp_path, monkeypatch) -> None:
    """As those of `git lfs install` do."""
    (tmp_path / "global").write_text('[filter "shout"]\nclean = tr a-z A-Z\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    (workspace / ".gitattributes").write_text("*.txt filter=shout\n")
    printed = git_output(workspace, "hash-object", "a.txt")
    assert (
        printed == subprocess.run(["git", "hash-object", "--stdin"], input=b"A", capture_output=True, check=True).stdout
    )
