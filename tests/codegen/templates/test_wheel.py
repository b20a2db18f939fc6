"""The templates reach the wheel, straight from the checkout and by way of the sdist."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[3]


def build(folder: Path, out: Path, kind: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    (made,) = out.iterdir()
    return made


def templates_in(wheel: Path) -> set[str]:
    lead = "mcpfactory_codegen/_templates/"
    with ZipFile(wheel) as archive:
        return {name.removeprefix(lead) for name in archive.namelist() if name.startswith(lead)}


def test_both_ways_to_a_wheel_hold_every_file_of_every_template(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "templates"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    expected = {path.removeprefix("templates/") for path in tracked.stdout.split("\0") if path}
    assert {"minimal/copier.yml", "openapi/copier.yml"} <= expected
    straight = build(ROOT / "factory/codegen", tmp_path / "straight", "wheel")
    assert templates_in(straight) == expected
    sdist = build(ROOT / "factory/codegen", tmp_path / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)  # not before 3.11.4
        archive.extractall(tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert templates_in(build(unpacked, tmp_path / "again", "wheel")) == expected
