"""The only writer: stays in its folder, keeps what people wrote, notices what was changed behind its back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcpfactory_codegen.servers.server_files import (
    LOCK,
    FilePlan,
    FileStep,
    Lockfile,
    LockfileError,
    Owner,
    UnsafePathError,
)
from tests.subtest_table import parametrize_subtests


def plan(folder: Path, files: Mapping[str, str | bytes], *, owner: Owner) -> FilePlan:
    planned = FilePlan(folder)
    if owner == "machine":
        planned.plan_machine_files({path: str(text) for path, text in files.items()})
    else:
        for path, content in files.items():
            planned.put(path, content, owner)
    return planned


def write(folder: Path, files: Mapping[str, str | bytes], *, owner: Owner) -> tuple[FileStep, ...]:
    planned = plan(folder, files, owner=owner)
    planned.apply()
    return planned.sorted_steps


def texts(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file() and not path.is_relative_to(folder / ".mcpfactory")
    }


@parametrize_subtests(
    "path", ["../a", "/a", "a/../../b", "", ".", "a//b", "a/../b", "a\\b", "C:/a", "a\0b", "./a", "a/./b", "a/"]
)
def test_a_path_that_is_not_plainly_below_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(UnsafePathError):
        write(tmp_path / "server", {"fine": "x", path: "x"}, owner="machine")
    assert not (tmp_path / "server").exists()


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    server = tmp_path / "server"
    server.mkdir()
    (server / "src").symlink_to(tmp_path / "outside")
    with pytest.raises(UnsafePathError):
        write(server, {"src/a.py": "x"}, owner="machine")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    server = tmp_path / "server"
    server.mkdir()
    (server / "a").symlink_to(target)
    write(server, {"a": "new"}, owner="machine")
    assert (target.read_text(), (server / "a").read_text(), (server / "a").is_symlink()) == ("precious", "new", False)


def test_machine_files_are_rewritten_and_removed_with_their_empty_folders(tmp_path: Path) -> None:
    write(tmp_path, {"g/a.py": "1", "g/deep/b.py": "1"}, owner="machine")
    steps = write(tmp_path, {"g/a.py": "2"}, owner="machine")
    assert steps == (FileStep("g/a.py", "rewrite", "machine"), FileStep("g/deep/b.py", "remove", "machine"))
    assert texts(tmp_path) == {"g/a.py": "2"}
    assert not (tmp_path / "g/deep").exists()


def test_a_bytecode_cache_does_not_keep_a_folder_alive_but_a_file_of_somebody_does(tmp_path: Path) -> None:
    write(tmp_path, {"g/a/x.py": "1", "g/b/x.py": "1"}, owner="machine")
    for folder in ("a", "b"):
        (tmp_path / "g" / folder / "__pycache__").mkdir()
        (tmp_path / "g" / folder / "__pycache__" / "x.pyc").write_bytes(b"")
    (tmp_path / "g/b/notes.txt").write_text("mine")
    write(tmp_path, {}, owner="machine")
    assert not (tmp_path / "g/a").exists()
    assert (tmp_path / "g/b/notes.txt").read_text() == "mine"


def test_an_edit_of_a_machine_file_is_reported_before_it_is_rewritten(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "1", "c": "1"}, owner="machine")
    (tmp_path / "a").write_text("edited")
    (tmp_path / "c").write_text("edited")
    expected = (
        FileStep("a", "rewrite", "machine", edited=True),
        FileStep("b", "same", "machine"),
        FileStep("c", "remove", "machine", edited=True),
    )
    assert plan(tmp_path, {"a": "2", "b": "1"}, owner="machine").sorted_steps == expected
    assert (tmp_path / "a").read_text() == "edited"
    assert write(tmp_path, {"a": "2", "b": "1"}, owner="machine") == expected
    assert texts(tmp_path) == {"a": "2", "b": "1"}


@pytest.mark.parametrize("owner", ["person", "document"])
def test_what_a_person_has_is_never_overwritten(tmp_path: Path, owner: str) -> None:
    write(tmp_path, {"a": "pristine", "b": "pristine"}, owner=owner)  # type: ignore[arg-type]  # parametrised
    (tmp_path / "a").write_text("edited")
    steps = write(tmp_path, {"a": "newer", "b": "newer", "c": "new"}, owner=owner)  # type: ignore[arg-type]  # as above
    assert [step.action for step in steps] == ["keep", "keep", "create"]
    assert texts(tmp_path) == {"a": "edited", "b": "pristine", "c": "new"}


def test_machine_work_leaves_a_persons_files_alone(tmp_path: Path) -> None:
    write(tmp_path, {"mine": "1"}, owner="person")
    write(tmp_path, {"its": "1"}, owner="machine")
    write(tmp_path, {}, owner="machine")
    assert texts(tmp_path) == {"mine": "1"}


def test_the_lock_is_canonical_and_keeps_the_pristine_text_of_what_is_merged(tmp_path: Path) -> None:
    write(tmp_path, {"b": "é", "a": b"\xff"}, owner="person")
    write(tmp_path, {"c": "1"}, owner="machine")
    first = (tmp_path / LOCK).read_bytes()
    data = json.loads(first)
    assert {path: sorted(entry) for path, entry in data["files"].items()} == {
        "a": ["owner", "sha256"],
        "b": ["owner", "pristine", "sha256"],
        "c": ["owner", "sha256"],
    }
    other = tmp_path / "other"
    write(other, {"c": "1"}, owner="machine")
    write(other, {"a": b"\xff", "b": "é"}, owner="person")
    assert (other / LOCK).read_bytes() == first
    assert Lockfile.read(other).files["b"].pristine == "é"


@pytest.mark.parametrize("text", ["{", "[]", '{"lock": 2, "files": {}}', '{"lock": 1, "files": {"a": {"x": 1}}}'])
def test_a_damaged_lock_is_named_with_what_mends_it(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).parent.mkdir()
    (tmp_path / LOCK).write_text(text)
    with pytest.raises(LockfileError) as raised:
        plan(tmp_path, {}, owner="machine")
    assert str(tmp_path / LOCK) in str(raised.value)
    assert raised.value.hint


def test_a_folder_in_the_place_of_a_file_stops_everything_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(UnsafePathError):
        write(tmp_path, {"a": "1", "b": "1"}, owner="machine")
    assert texts(tmp_path) == {}


def test_what_cannot_be_written_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file where a folder is needed")
    with pytest.raises(OSError, match="a"):
        write(tmp_path, {"0.txt": "first", "a/b.txt": "second"}, owner="machine")
    assert [path.name for path in tmp_path.rglob("*")] == ["a"]
