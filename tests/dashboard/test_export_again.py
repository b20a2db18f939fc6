"""An export into an earlier one: byte for byte what a fresh one would be, whatever has changed, and no more is written than that."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.dashboard.export import export
from tests.cli.conftest import Inside
from tests.dashboard.conftest import FINDING, Bench
from tests.dashboard.test_size import add

RECORD = "assets/export.json"


def tree(site: Path) -> dict[str, bytes]:
    return {file.relative_to(site).as_posix(): file.read_bytes() for file in site.rglob("*") if file.is_file()}


def times(site: Path) -> dict[str, int]:
    return {file.relative_to(site).as_posix(): file.stat().st_mtime_ns for file in site.rglob("*") if file.is_file()}


def of_workspace(bench: Bench, chance: random.Random) -> None:
    """Something happens in the workspace."""
    names = sorted(folder.name for folder in (bench.root / "servers").glob("[!.]*"))
    name = chance.choice(names)
    folder, report = bench.root / "servers" / name, bench.root / "servers" / name / ".mcpfactory/report.json"
    changes: tuple[Callable[[], object], ...] = (
        lambda: bench.add(f"new{chance.randrange(1000)}x{len(names)}"),
        lambda: len(names) > 2 and shutil.rmtree(folder),
        lambda: bench.passed(name, "generate", message=f"{chance.random()}"),
        lambda: bench.finished(name, "test", "failed", fresh=chance.random() < 0.5, run=new_id(), message="<no>"),
        lambda: bench.built(name, f"{chance.randrange(9)}.{chance.randrange(9)}.0"),
        lambda: bench.validated(
            name, bench.built(name, "7.0.0"), "failed",
            {"score": chance.randrange(100), "passed": False, "findings": [FINDING], "not_checked": []},
        ),
        lambda: report.write_text(report.read_text().replace("600", f"{chance.randrange(1000)}")),
        lambda: report.unlink(missing_ok=True),
        lambda: bench.store.state_file(name).write_text("{"),
        lambda: bench.store.state_file(name).unlink(missing_ok=True),
        lambda: add(bench.workspace.artifacts / name / "logs" / "test.log"),
        lambda: (bench.root / "mcpfactory.toml").write_text(f'[workspace]\nname = "shop {chance.randrange(9)}"\n'),
    )  # fmt: skip
    with suppress(PipelineError, FileNotFoundError):  # of a state that cannot be read nothing goes on
        chance.choice(changes)()


def of_site(site: Path, chance: random.Random) -> None:
    """Somebody changes the earlier export."""
    file = site / chance.choice(sorted(tree(site)))
    changes: tuple[Callable[[], object], ...] = (
        lambda: file.write_bytes(file.read_bytes() + b" "),
        lambda: file.name != "live.js" and file.unlink(),
        lambda: (site / RECORD).write_bytes(b"{"),
        lambda: (site / RECORD).unlink(missing_ok=True),
        lambda: os.utime(file, ns=(0, 0)),
    )
    chance.choice(changes)()


@pytest.mark.parametrize("seed", range(2))
def test_it_is_what_a_fresh_one_is_after_any_changes(library: Bench, tmp_path: Path, seed: int) -> None:
    chance, site = random.Random(seed), tmp_path / "site"
    export(library.root, site)
    for step in range(5):
        for _ in range(chance.randrange(4)):
            of_workspace(library, chance)
        lost = chance.random() < 0.3
        if lost:
            of_site(site, chance)
        before, told = tree(site), export(library.root, site)
        fresh = tmp_path / f"fresh-{step}"
        export(library.root, fresh)
        now, expected = tree(site), tree(fresh)
        if lost:  # what no record names any more is left: it may be somebody else's
            assert {path: now[path] for path in expected} == expected
            shutil.rmtree(site)
            fresh.rename(site)
            continue
        assert now == expected
        changed = {path for path in now if before.get(path) != now[path]}
        assert (told.written, told.unchanged, told.removed) == (
            len(changed), len(now) - len(changed), len(before.keys() - now.keys()),
        )  # fmt: skip
        assert {file.relative_to(site).as_posix() for file in told.files} == set(now)


def test_what_did_not_change_is_neither_written_nor_made(library: Bench, tmp_path: Path) -> None:
    site = tmp_path / "site"
    first = export(library.root, site)
    assert (first.written, first.unchanged, first.removed) == (len(first.files), 0, 0)
    before = times(site)
    again = export(library.root, site)
    assert (again.written, again.unchanged, again.removed) == (0, len(first.files), 0)
    assert times(site) == before
    library.passed("zebra", "generate")
    export(library.root, site)
    written = {path for path, at in times(site).items() if before.get(path) != at}
    assert {path for path in written if path.startswith("servers/")} <= {path for path in written if "/zebra/" in path}
    assert "servers/zebra/index.html" in written


def test_pages_that_another_version_made_are_made_anew(library: Bench, tmp_path: Path) -> None:
    site = tmp_path / "site"
    export(library.root, site)
    expected = tree(site)
    record, page = json.loads(expected[RECORD]), b"as it was made before"
    (site / "servers/atlas/index.html").write_bytes(page)
    record["files"]["servers/atlas/index.html"] = hashlib.sha256(page).hexdigest()
    (site / RECORD).write_text(json.dumps({**record, "of": "an earlier one"}))
    export(library.root, site)
    assert tree(site) == expected


@pytest.mark.parametrize(
    "path",
    ["../mine.txt", "/etc/hostname", "linked/mine.txt", "servers/../../mine.txt", ".git/config", ""],
)
def test_nothing_outside_of_the_site_is_removed_whatever_the_record_says(
    library: Bench, tmp_path: Path, path: str
) -> None:
    site, mine = tmp_path / "site", tmp_path / "mine.txt"
    mine.write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/mine.txt").write_text("mine")
    export(library.root, site)
    (site / "linked").symlink_to(tmp_path / "elsewhere")
    add(site / ".git/config")
    add(site / "own.txt")
    record = json.loads((site / RECORD).read_bytes())
    record["files"][path] = "0" * 64
    (site / RECORD).write_text(json.dumps(record))
    assert export(library.root, site).removed == 0
    assert mine.is_file()
    assert (tmp_path / "elsewhere/mine.txt").is_file()
    assert (site / ".git/config").is_file()
    assert (site / "own.txt").is_file(), "files of others stay"


@pytest.mark.parametrize("place", ["board", "index.json", "servers/atlas", RECORD, "assets"])
def test_a_link_is_replaced_and_nothing_is_written_where_it_leads(library: Bench, tmp_path: Path, place: str) -> None:
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    export(library.root, site)
    fresh = tree(site)
    (site / place).rename(elsewhere)
    (site / place).symlink_to(elsewhere)
    other = elsewhere / "index.html" if elsewhere.is_dir() else elsewhere
    other.write_text("somebody else's")
    before = tree(tmp_path / "elsewhere") or elsewhere.read_text()
    export(library.root, site)
    assert tree(site) == fresh
    assert not any(path.is_symlink() for path in site.rglob("*"))
    assert (tree(tmp_path / "elsewhere") or elsewhere.read_text()) == before


def test_folders_of_what_is_gone_are_gone_too(library: Bench, tmp_path: Path) -> None:
    site = tmp_path / "site"
    export(library.root, site)
    add(site / "servers/weather/own.txt")
    for name in ("zebra", "weather"):
        shutil.rmtree(library.root / "servers" / name)
    told = export(library.root, site)
    assert told.removed > 10
    assert not (site / "servers/zebra").exists()
    assert [file.name for file in (site / "servers/weather").rglob("*")] == ["own.txt"]


def test_the_command_says_how_much_it_wrote(library: Bench, tmp_path: Path) -> None:
    shell, site = Inside(library.root), tmp_path / "site"
    first = shell("dashboard", "--export", str(site), "--json").data
    assert (first["written"], first["unchanged"], first["removed"]) == (len(first["files"]), 0, 0)
    shutil.rmtree(library.root / "servers/zebra")
    done = shell("dashboard", "--export", str(site))
    assert done.code == 0
    found = [int(word) for word in done.out.replace(",", "").split() if word.isdecimal()]
    files, written, unchanged, removed = found
    assert files == written + unchanged == len(tree(site))
    assert 0 < written < unchanged
    assert removed == len(set(first["files"]) - tree(site).keys()) > 5
