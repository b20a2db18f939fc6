"""A candidate is tested with one lock of its dependencies, until `pipeline refresh` tests it with newer ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import CliProcess, InProcessCli, WorkspaceCache
from tests.cli.tiny_package import NAME, declare, fruit_wheel, write_server


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory, workspace_cache: WorkspaceCache) -> CliProcess:
    """A workspace with the tested server `notes`, which depends on a small package in a folder."""
    place = tmp_path_factory.mktemp("refresh")
    fruit_wheel(place / "links")
    workspace_cache.copy(place / "ws", (), ("new", "notes", "--template", "minimal"))
    folder = place / "ws/servers/notes"
    write_server(folder, before="import fruit_of_tests\n")
    for test in folder.glob("tests/test_*.py"):
        test.write_text("import fruit_of_tests\n\n\ndef test_kind():\n    assert 'apple' in fruit_of_tests.kind\n")
    declare(folder, NAME)
    shell = CliProcess(place / "ws", {"UV_FIND_LINKS": str(place / "links")})
    done = shell("pipeline", "run", "--until", "test")
    assert done.code == 0, done.out + done.err
    return shell


def planned(space: CliProcess) -> dict[str, str]:
    steps = space("pipeline", "plan", "--json").data
    return {step["stage"]: "; ".join(step["reasons"]) for step in steps if step["verdict"] == "run"}


def lock(space: CliProcess) -> Path:
    (found,) = space.folder.glob("pipeline/artifacts/notes/*/requirements.lock")
    return found


def test_a_newer_dependency_changes_nothing_until_it_is_wanted(space: CliProcess) -> None:
    assert f"{NAME}==1.0 \\\n    --hash=sha256:" in lock(space).read_text()
    fruit_wheel(space.folder.parent / "links", "2.0")
    assert "test" not in planned(space)
    tried = space("pipeline", "refresh", "--dry-run", "--json")
    assert tried.data["changes"] == [{"server": "notes", "package": NAME, "before": "1.0", "after": "2.0"}]
    assert "test" not in planned(space)
    done = space("pipeline", "refresh", "notes")
    assert f"notes: {NAME} 1.0 → 2.0\n" in done.out
    assert "notes: test passed" in done.out
    assert f"{NAME}==2.0" in lock(space).read_text()
    again = space("pipeline", "refresh", "--json").data
    assert (again["changes"], again["servers"]) == ([], {})


def test_versions_that_fail_are_reported_and_not_kept(space: CliProcess) -> None:
    before = lock(space).read_bytes()
    fruit_wheel(space.folder.parent / "links", "3.0", kind="pear")
    try:
        done = space("pipeline", "refresh", "notes")
        assert done.code == 1
        assert f"notes: {NAME} 2.0 → 3.0\n" in done.out
        assert "notes: failed\n" in done.out
        assert lock(space).read_bytes() == before
        assert "test" not in planned(space)
    finally:
        next(space.folder.parent.glob("links/*-3.0-*")).unlink()


def test_in_a_fresh_clone_the_recorded_lock_counts(space: CliProcess) -> None:
    before = lock(space).read_bytes()
    lock(space).unlink()
    try:
        assert "test" not in planned(space)
    finally:
        (next(space.folder.glob("pipeline/artifacts/notes/*/*.whl")).parent / "requirements.lock").write_bytes(before)


def test_another_index_needs_a_new_lock(space: CliProcess) -> None:
    settings = space.folder / "uv.toml"
    settings.write_text('exclude-newer = "2031-01-01"\n')
    try:
        assert planned(space)["build"] == "uv changed"
    finally:
        settings.unlink()


def test_a_dependency_from_a_url_needs_permission(space: CliProcess, tmp_path: Path) -> None:
    shutil.copytree(space.folder, tmp_path / "ws", symlinks=True)
    shell = InProcessCli(tmp_path / "ws", {"UV_FIND_LINKS": str(space.folder.parent / "links")})
    folder = tmp_path / "ws/servers/notes"
    wheel = next(space.folder.parent.glob("links/*-2.0-*.whl"))
    declare(folder, f"{NAME} @ {wheel.as_uri()}")
    project = folder / "pyproject.toml"
    project.write_text(project.read_text() + "\n[tool.hatch.metadata]\nallow-direct-references = true\n")
    refused = shell("pipeline", "run", "--until", "build")
    assert refused.code == 1
    assert f'direct_references = ["{NAME}"]' in refused.out + refused.err
    config = folder / "mcpfactory.toml"
    config.write_text(config.read_text() + f'\n[build]\ndirect_references = ["{NAME}"]\n')
    done = shell("pipeline", "run", "--until", "build")
    assert done.code == 0, done.out + done.err
