"""The factory hands out its own wheels: the same bytes from sources and from installations, and none that were changed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest
import uv
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mcpfactory import version
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.build.factory_distributions import DISTRIBUTIONS, cached_runtime_wheel, write_factory_wheel
from mcpfactory_pipeline.build.wheels import canonical_wheel, read_wheel

pytestmark = pytest.mark.xdist_group("distributions")  # what the module's fixtures build is built once
ROOT = Path(__file__).resolve().parents[2]
MEMBERS = {"mcpfactory-runtime": "factory/runtime", "mcpfactory-codegen": "factory/codegen",
           "mcpfactory-pipeline": "pipeline", "mcpfactory": "factory/cli"}  # fmt: skip
HAND_OUT = """
import sys
from pathlib import Path
from mcpfactory_pipeline.build.factory_distributions import DISTRIBUTIONS, write_factory_wheel
for name in DISTRIBUTIONS:
    write_factory_wheel(name, Path(sys.argv[1]))
"""
Run = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> Path:
    """The four wheels, of the sources of this repository."""
    into = tmp_path_factory.mktemp("wheels")
    for name in DISTRIBUTIONS:
        write_factory_wheel(name, into)
    return into


INSTALLERS = {
    "uv": [uv.find_uv_bin(), "pip", "install", "--python", sys.executable, "--link-mode", "copy"],
    "pip": [sys.executable, "-m", "pip", "install", "--no-index", "--no-compile", "--disable-pip-version-check"],
}


def install(installer: str, wheels: Path, into: Path) -> Run:
    """An installation that comes before everything else on the path of Python; gives what runs a command with it."""
    command = [*INSTALLERS[installer], "--quiet", "--no-deps", "--target", str(into), *map(str, wheels.glob("*.whl"))]
    subprocess.run(command, check=True, capture_output=True)

    def run(*arguments: str, cwd: Path = into.parent, path: str = str(into)) -> subprocess.CompletedProcess:
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return subprocess.run(
            [sys.executable, *arguments], cwd=cwd, env={**environ, "PYTHONPATH": path},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def site(tmp_path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def installed(wheels, site) -> Run:
    return install("uv", wheels, site)


def hashes(folder: Path) -> dict[str, str]:
    return {file.name: hash_file(file) for file in folder.glob("*.whl")}


def test_an_installation_hands_out_the_bytes_that_the_sources_give(wheels, tmp_path):
    run = install("pip", wheels, tmp_path / "site")
    done = run("-c", HAND_OUT, str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert len(hashes(wheels)) == len(DISTRIBUTIONS)
    assert hashes(tmp_path / "again") == hashes(wheels)


def test_templates_travel_with_code_generation(wheels):
    with zipfile.ZipFile(next(wheels.glob("mcpfactory_codegen-*"))) as wheel:
        held = {name.partition("_templates/")[2] for name in wheel.namelist() if "_templates/" in name}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT / "templates", capture_output=True, text=True, check=True)
    assert held == set(tracked.stdout.splitlines())


def test_a_wheel_holds_every_tracked_module(wheels):
    for name, folder in MEMBERS.items():
        package = name.replace("-", "_")
        with zipfile.ZipFile(next(wheels.glob(f"{package}-*"))) as wheel:
            held = {name for name in wheel.namelist() if name.endswith(".py") and "/_templates/" not in name}
        listed = subprocess.run(
            ["git", "ls-files", "*.py"], cwd=ROOT / folder / "src", capture_output=True, text=True, check=True
        )
        assert held == set(listed.stdout.splitlines()), f"{name}: git ignores a module, or it is not added yet"


def test_the_form_of_a_wheel_follows_from_its_files_alone(wheels):
    wheel = next(wheels.glob("mcpfactory-*"))
    files = read_wheel(wheel)
    backwards = dict(reversed(files.items()))
    assert canonical_wheel(backwards) == canonical_wheel(files) == wheel.read_bytes()


def spoil_changed(module: Path) -> None:
    module.write_text(module.read_text("utf-8") + "# changed\n", "utf-8")


SPOILS = {
    "changed": (spoil_changed, "was changed after installation: {}"),
    "missing": (Path.unlink, "is incomplete: {}: No such file or directory"),
}


@pytest.mark.parametrize("kind", SPOILS)
def test_a_runtime_that_is_not_as_installed_is_what_doctor_says_first(kind, installed, site):
    spoil, words = SPOILS[kind]
    module = site / "mcpfactory_runtime" / "testing.py"
    assert installed("-m", "mcpfactory", "doctor").stdout.startswith("ok      runtime: ")
    spoil(module)
    done = installed("-m", "mcpfactory", "doctor")
    first, hint = done.stdout.splitlines()[:2]
    assert first == f"error   runtime: mcpfactory-runtime {words.format(module)}"
    assert hint.startswith("        hint: ")
    assert "--force-reinstall" in hint
    assert done.returncode == 5


def test_a_stage_that_cannot_have_the_runtime_says_why_and_what_to_do(installed, site, tmp_path):
    module = site / "mcpfactory_runtime" / "testing.py"
    assert installed("-m", "mcpfactory", "init", str(tmp_path / "space"), "--factory", "index").returncode == 0
    space = tmp_path / "space"
    (space / "mcpfactory.toml").write_text('[workspace]\nname = "space"\n[pipeline]\nbackoff = 0\n')
    assert installed("-m", "mcpfactory", "new", "hello", "--template", "minimal", cwd=space).returncode == 0
    spoil_changed(module)
    done = installed("-m", "mcpfactory", "pipeline", "run", "hello", "--until", "test", "--json", cwd=space)
    assert done.returncode == 5, done.stdout + done.stderr
    text = done.stdout + done.stderr
    assert f"mcpfactory-runtime was changed after installation: {module}" in text


def test_what_lies_in_the_wheelhouse_and_was_changed_is_put_right(installed, tmp_path):
    ask = "import sys; from pathlib import Path; from mcpfactory_pipeline.build.factory_distributions import cached_runtime_wheel as r; print(r(Path(sys.argv[1]), build=False))"
    place = Path(installed("-c", ask, str(tmp_path)).stdout.strip())
    right = place.read_bytes()
    place.write_bytes(b"other")
    assert Path(installed("-c", ask, str(tmp_path)).stdout.strip()) == place
    assert place.read_bytes() == right


def test_the_runtime_of_sources_is_built_once(tmp_path, capfd):
    assert cached_runtime_wheel(tmp_path, build=False) is None
    first = cached_runtime_wheel(tmp_path)
    assert first is not None
    assert "built mcpfactory_runtime-" in capfd.readouterr().out, "the log of a stage has what was built"
    assert cached_runtime_wheel(tmp_path, build=False) == first
    assert capfd.readouterr().out == ""
    first.unlink()
    assert cached_runtime_wheel(tmp_path, build=False) is None
    assert cached_runtime_wheel(tmp_path) == first
    assert first.is_file()


def make_dist(into: Path, *folders: Path, umask: int = 0o022, **environ: str) -> subprocess.CompletedProcess:
    """What `make dist` runs."""
    command = [sys.executable, "-m", "mcpfactory_pipeline.build.factory_distributions", str(into), *map(str, folders)]
    return subprocess.run(
        command,
        cwd=into.parent,
        env={**os.environ, **environ},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )


def test_packages_are_the_same_bytes_twice_and_from_another_folder(tmp_path):
    elsewhere = shutil.copytree(
        ROOT / "factory/cli", tmp_path / "else where", ignore=shutil.ignore_patterns("__pycache__")
    )
    for file in elsewhere.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
        os.utime(file, (1, 1))
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "mcpfactory-0.0.1-py3-none-any.whl").write_text("of an earlier version")
    one = make_dist(tmp_path / "one", ROOT / "factory/cli")
    other = make_dist(tmp_path / "again", elsewhere, umask=0o077, TZ="Asia/Tokyo", SOURCE_DATE_EPOCH="1700000000")
    assert (one.returncode, other.returncode) == (0, 0), one.stderr + other.stderr
    made = {file.name: hash_file(file) for file in (tmp_path / "one").iterdir()}
    assert sorted(made) == [f"mcpfactory-{version()}-py3-none-any.whl", f"mcpfactory-{version()}.tar.gz"]
    assert {file.name: hash_file(file) for file in (tmp_path / "again").iterdir()} == made
    printed = dict(reversed(line.split()) for line in one.stdout.splitlines())
    assert printed == {str(tmp_path / "one" / name): text.removeprefix("sha256:") for name, text in made.items()}


def test_the_wheel_that_is_published_is_the_one_that_installations_hand_out(wheels, tmp_path):
    assert make_dist(tmp_path / "dist", ROOT / "factory/cli").returncode == 0
    name = f"mcpfactory-{version()}-py3-none-any.whl"
    assert hashes(tmp_path / "dist")[name] == hashes(wheels)[name]


def test_what_does_not_build_is_an_error_with_a_hint(tmp_path):
    done = make_dist(tmp_path / "dist", tmp_path)
    assert done.returncode == 5
    assert (
        done.stderr == f"error: {tmp_path} has no pyproject.toml\nhint: give a folder that contains a pyproject.toml\n"
    )


def test_the_build_backend_is_the_locked_one_in_every_member():
    locked = next(
        line.split()[0]
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if line.startswith("hatchling==")
    )
    for folder in MEMBERS.values():
        config = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
        assert config["build-system"]["requires"] == [locked], (
            f"{folder}/pyproject.toml: its bytes are part of the wheels"
        )


def test_the_lock_that_travels_with_the_factory_has_each_dependency_and_its_hashes():
    locked = dict(
        re.findall(
            r"^([a-z0-9-]+)==(\S+)",
            (ROOT / "pipeline/src/mcpfactory_pipeline/delivery/ci/templates" / "requirements.lock").read_text(),
            re.MULTILINE,
        )
    )
    tested = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert locked.items() <= tested.items(), "make lock"
    found, left = set[tuple[str, str]](), [("mcpfactory", "")]
    while left:
        name, extra = left.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for text in distribution(name).requires or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                left += [(canonicalize_name(wanted.name), one) for one in ("", *wanted.extras)]
    assert {name for name, _ in found} - set(DISTRIBUTIONS) <= set(locked), "make lock"
