"""Many servers: nothing is looked at again that the kernel says is the same, and nothing that changed is missed, however it changed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.dashboard.reader import WorkspaceReader
from mcpfactory_pipeline.dashboard.watching import FileWatch
from tests.dashboard.conftest import Bench
from tests.dashboard.test_size import CHANGES, add
from tests.machine import skip_without

WEATHER = "servers/weather"


def replace(bench: Bench, file: Path) -> None:
    """As editors save: another file takes its place."""
    fresh = bench.root.parent / "new"
    add(fresh)
    fresh.rename(file)


def swap(folder: Path) -> None:
    """Another folder of the same name."""
    shutil.copytree(folder, folder.with_name(".other"))
    folder.rename(folder.with_name(".old"))
    folder.with_name(".other").rename(folder)
    add(folder / "extra.py")


def deep(folder: Path) -> None:
    """Folders in a new folder, and then a file in the last."""
    add(folder / "one/two/three/file.py")


def wheel(bench: Bench) -> Path:
    return next((bench.workspace.artifacts / "bookshop").rglob("*.whl"))


MORE: dict[str, tuple[str, Callable[[Bench], None]]] = {
    **{what: ("weather", change) for what, change in CHANGES.items()},
    "saved by an editor": ("weather", lambda bench: replace(bench, bench.root / WEATHER / ".mcpfactory/report.json")),
    "another folder": ("weather", lambda bench: swap(bench.root / WEATHER)),
    "folders in a new one": ("weather", lambda bench: deep(bench.root / WEATHER)),
    "the file of a candidate is gone": ("bookshop", lambda bench: wheel(bench).unlink()),
    "the folder of a candidate is gone": ("bookshop", lambda bench: shutil.rmtree(wheel(bench).parent)),
    "a channel's page": (
        "bookshop",
        lambda bench: add(bench.workspace.pipeline / "channels/staging/simple/bookshop-mcp/index.html"),
    ),
}


def settled(library: Bench) -> WorkspaceReader:
    """A reader that has looked twice: from then on it listens."""
    reader = WorkspaceReader(library.root, many=0)
    reader.workspace()
    reader.workspace()
    return reader


def test_the_folder_of_all_servers_may_become_another(library: Bench) -> None:
    reader = settled(library)
    before = {server.name: server.tools for server in reader.workspace().servers}
    assert before["weather"] is not None
    shutil.copytree(library.root / "servers", library.root / "others")
    (library.root / "others/weather/.mcpfactory/report.json").unlink()
    (library.root / "servers").rename(library.root / "old")
    (library.root / "others").rename(library.root / "servers")
    after = {server.name: server.tools for server in reader.workspace().servers}
    assert after == {**before, "weather": None}


@pytest.mark.parametrize("what", MORE)
def test_what_changed_is_heard_of_and_nothing_else_is_read_again(library: Bench, what: str) -> None:
    reader = settled(library)
    before = {server.name: server for server in reader.workspace().servers}
    concerned, change = MORE[what]
    change(library)
    after = {server.name: server for server in reader.workspace().servers}
    assert [name for name in before if after.get(name) is not before[name]] == [concerned]
    again = {server.name: server for server in reader.workspace().servers}
    change_again = library.root / "servers" / concerned / "once more"
    add(change_again)
    assert reader.workspace().servers[list(before).index(concerned)] is not again[concerned], "the second time, too"


def test_what_did_not_change_is_not_looked_at(library: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = settled(library)
    looked: list[str] = []
    stat = os.stat

    def counted(path: Any, *args: Any, **options: Any) -> os.stat_result:
        looked.append(str(path))
        return stat(path, *args, **options)

    monkeypatch.setattr(os, "stat", counted)
    reader.workspace()
    if sys.platform == "linux":  # elsewhere the kernel tells of nothing
        assert [path for path in looked if "report.json" in path or path.endswith(".whl")] == []
    looked.clear()
    reader.look_again()
    assert len([path for path in looked if "report.json" in path]) >= 4, "for safety, now and then"


def test_what_lies_behind_a_link_or_where_nothing_is_told_is_looked_at(library: Bench, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    report = library.root / WEATHER / ".mcpfactory/report.json"
    report.rename(elsewhere)
    report.symlink_to(elsewhere)
    reader = settled(library)
    before = {server.name: server for server in reader.workspace().servers}
    add(elsewhere)
    after = {server.name: server for server in reader.workspace().servers}
    assert [name for name in before if after[name] is not before[name]] == ["weather"]
    assert not FileWatch(Path("/proc")).cover("weather", [str(report)], str(report.parent))


def test_a_change_that_nothing_tells_of_is_seen_when_all_is_looked_at(library: Bench) -> None:
    reader = settled(library)
    before = {server.name: server for server in reader.workspace().servers}
    outside = library.root.parent / "same file"
    os.link(
        library.root / WEATHER / "mcpfactory.toml", outside
    )  # the listener has the name, and the change goes by another
    reader.workspace()
    before = {server.name: server for server in reader.workspace().servers}
    outside.write_text(outside.read_text() + "\n")
    reader.look_again()
    after = {server.name: server for server in reader.workspace().servers}
    assert [name for name in before if after[name] is not before[name]] == ["weather"]


@pytest.fixture
def heard(tmp_path: Path) -> tuple[FileWatch, Path]:
    """A watch, and a folder with a folder in it that it covers."""
    folder = tmp_path / "servers/one"
    add(folder / "src/code.py")
    skip_without("linux")  # elsewhere the kernel tells of nothing
    watch = FileWatch(tmp_path)
    assert cover(watch, folder)
    return watch, folder


def cover(watch: FileWatch, folder: Path) -> bool:
    """Cover what is in a folder now; it is the same from here on."""
    covered = watch.cover("one", [str(folder), *map(str, sorted(folder.rglob("*")))], str(folder))
    watch.settle("one", watch)
    return covered


def same(watch: FileWatch) -> bool:
    watch.hear()
    return watch.unchanged("one", watch)


def listened(watch: FileWatch) -> int:
    """In how many folders the kernel listens for it."""
    return Path(f"/proc/self/fdinfo/{watch._descriptor}").read_text().count("inotify wd:")


@pytest.mark.parametrize("moved", ["servers/one", "servers", "servers/one/src"])
def test_folders_in_a_folder_that_took_the_place_of_another_are_listened_in(
    heard: tuple[FileWatch, Path], tmp_path: Path, moved: str
) -> None:
    watch, folder = heard
    (tmp_path / moved).rename(tmp_path / "away")
    shutil.copytree(tmp_path / "away", tmp_path / moved)
    assert not same(watch)
    cover(watch, folder)
    assert same(watch)
    add(next((tmp_path / "away").rglob("code.py")))
    assert same(watch), "what was moved away is no part of it"
    add(folder / "src/code.py")
    assert not same(watch)


def test_what_is_gone_is_listened_to_and_remembered_no_more(heard: tuple[FileWatch, Path], tmp_path: Path) -> None:
    watch, folder = heard

    def remembered() -> list[int]:
        return [listened(watch), *(len(kept) for kept in vars(watch).values() if isinstance(kept, dict))]

    before = remembered()
    for number in range(200):
        add(folder / f"made-{number}/below/file")
        cover(watch, folder)
        if number % 2:
            shutil.rmtree(folder / f"made-{number}")
        else:
            (folder / f"made-{number}").rename(tmp_path / f"away-{number}")
        assert not same(watch)
    cover(watch, folder)
    assert same(watch)
    assert remembered() == before
