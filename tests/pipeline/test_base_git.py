"""Our git commands run no program that files of a pull request name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.files import write_temporary_file
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
    assert write_temporary_file(tmp_path / "a", b"secret", mode=0o600).stat().st_mode & 0o777 == 0o600
    assert write_temporary_file(tmp_path / "b", b"text", mode=0o644).stat().st_mode & 0o777 == 0o644
    assert [mode & 0o077 for mode in modes] == [0, 0]
