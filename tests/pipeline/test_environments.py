"""Two environments of one candidate: what its tests change never reaches `validate`, and what is broken is made anew."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.build import candidate_environment
from mcpfactory_pipeline.build.candidate_environment import check_installed_files, hash_environment_files
from mcpfactory_pipeline.build.wheels import canonical_wheel, canonical_wheel_name
from mcpfactory_pipeline.isolation.levels import LEVELS
from mcpfactory_pipeline.plan.stage import Artifact, StageInputs
from mcpfactory_pipeline.stages import validate

INFO = "hello-1.0.dist-info"


@pytest.fixture
def candidate(tmp_path) -> Artifact:
    """A wheel of one module that needs nothing."""
    files = {
        "mcpfactory_hello/__init__.py": b"WORD = 'built'\n",
        f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n",
        f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    folder = tmp_path / "artifacts" / "hello" / "c1"
    folder.mkdir(parents=True)
    wheel = folder / canonical_wheel_name(files)
    wheel.write_bytes(canonical_wheel(files))
    return Artifact("c1", "1.0", folder, {wheel.name: hash_file(wheel)})


@pytest.fixture
def inputs(tmp_path, candidate) -> StageInputs:
    for name in ("server", "work"):
        (tmp_path / name).mkdir()
    return StageInputs(
        "hello", "mcpfactory_hello", tmp_path / "server", tmp_path, tmp_path / "work", tmp_path / "artifacts",
        tmp_path / "keep", candidate,
    )  # fmt: skip


def word(python: Path) -> str:
    code = "import mcpfactory_hello; print(mcpfactory_hello.WORD)"
    return subprocess.run([str(python), "-B", "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def module(found: candidate_environment.CandidateEnvironment) -> Path:
    return next(found.folder.rglob("mcpfactory_hello/__init__.py"))


def test_validate_has_the_wheel_and_nothing_else_whatever_the_tests_did_to_theirs(inputs, candidate):
    tests = candidate_environment.environment_for_tests(inputs, candidate, copied=False)
    place = module(tests)
    place.unlink()
    place.write_text("WORD = 'forged'\n")
    checked = candidate_environment.environment_for_validate(inputs, candidate)
    assert word(checked.python) == "built"
    assert {path.split("/")[3] for path in checked.holds if "/site-packages/" in path} - {"_virtualenv.py", "_virtualenv.pth"} == {
        "mcpfactory_hello", INFO,
    }  # fmt: skip
    assert any("/pytest/" in path for path in tests.holds)
    assert word(candidate_environment.environment_for_tests(inputs, candidate, copied=False).python) == "built", (
        "made anew"
    )


def test_what_somebody_changed_in_the_cache_of_uv_is_fetched_again(inputs, candidate, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_LINK_MODE", "hardlink")
    first = candidate_environment.environment_for_tests(inputs, candidate, copied=False)
    linked = next(first.folder.rglob("iniconfig/__init__.py"))
    assert linked.stat().st_nlink > 1
    right = linked.read_bytes()
    with linked.open("ab") as stream:
        stream.write(b"WORD = 'forged'\n")
    again = candidate_environment.environment_for_tests(inputs, candidate, copied=False)
    assert next(again.folder.rglob("iniconfig/__init__.py")).read_bytes() == right
    assert "iniconfig/__init__.py; fetching again" in capfd.readouterr().out


@pytest.mark.parametrize("damage", ["deleted", "changed", "added", "interpreter", "list"])
def test_an_environment_that_is_not_as_it_was_made_is_made_anew(inputs, candidate, damage):
    first = candidate_environment.environment_for_validate(inputs, candidate)
    assert candidate_environment.environment_for_validate(inputs, candidate) == first, "as it is, it is used again"
    stamp = (first.folder / "ready.json").stat().st_mtime_ns
    if damage == "deleted":
        module(first).unlink()
    elif damage == "changed":
        place = module(first)
        place.unlink()  # else its other names in uv's cache would change, too
        place.write_text("WORD = 'forged'\n")
    elif damage == "added":
        (module(first).parents[1] / "sitecustomize.py").write_text("WORD = 'forged'\n")
    elif damage == "interpreter":
        first.python.unlink()
        first.python.symlink_to("/nowhere/python3")
    else:
        (first.folder / "ready.json").write_text(json.dumps({"holds": 1}))
    again = candidate_environment.environment_for_validate(inputs, candidate)
    assert (again.folder / "ready.json").stat().st_mtime_ns != stamp
    assert again.holds.keys() == first.holds.keys()
    assert word(again.python) == "built"


def test_a_wheel_with_other_bytes_than_were_built_is_not_installed(inputs, candidate):
    candidate.wheel.write_bytes(candidate.wheel.read_bytes() + b"x")
    with pytest.raises(StageError, match="is not the built file") as told:
        candidate_environment.environment_for_validate(inputs, candidate)
    assert told.value.hint


def test_an_installation_that_is_not_what_the_packages_hold_is_refused(inputs, candidate):
    found = candidate_environment.environment_for_validate(inputs, candidate)
    check_installed_files(found.folder, hash_environment_files(found.folder), candidate.wheel)
    site = module(found).parents[1]
    for file, text in ((module(found), "WORD = 'forged'\n"), (site / "extra.pth", "import os\n")):
        shutil.copytree(found.folder, inputs.work / file.name, symlinks=True)
        place = inputs.work / file.name / file.relative_to(found.folder)
        place.unlink(missing_ok=True)
        place.write_text(text)
        with pytest.raises(StageError, match=file.name):
            check_installed_files(
                inputs.work / file.name, hash_environment_files(inputs.work / file.name), candidate.wheel
            )


def test_a_wheel_that_does_not_declare_the_runtime_does_not_get_it(inputs, candidate):
    checked = candidate_environment.environment_for_validate(inputs, candidate)
    assert not any("mcpfactory_runtime" in path for path in checked.holds)


def test_a_server_that_imports_what_it_does_not_declare_does_not_start_in_validate(inputs, candidate):
    files = {
        "mcpfactory_hello/__init__.py": b"",
        "mcpfactory_hello/__main__.py": b"import pytest\n",
        f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n",
        f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    candidate.wheel.write_bytes(canonical_wheel(files))
    candidate.files[candidate.wheel.name] = hash_file(candidate.wheel)
    (inputs.folder / "pyproject.toml").write_text('[project]\nname = "hello"\nversion = "1.0"\n')
    (inputs.folder / "mcpfactory.toml").write_text('[server]\nname = "hello"\npackage = "mcpfactory_hello"\n')
    found = validate.run(inputs)
    assert found.outcome == "failed"
    assert "__main__.py:1: ModuleNotFoundError: No module named 'pytest'" in found.message
    assert "[project] dependencies" in found.message
    assert found.summary["isolation"] in LEVELS
