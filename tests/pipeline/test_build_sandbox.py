"""A build backend is code of the server: it builds from a copy in a sandbox, and what it hands out is a file that it made."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from mcpfactory_pipeline.build import pep517_backend
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.build.wheels import build_packages, build_wheel
from mcpfactory_pipeline.isolation import levels
from tests.skip_conditions import needs

SECRET = "canary-77d1"

# A backend within the project, so that no index is asked: what it does first is `{act}`.
BACKEND = """
import io, json, os, tarfile, zipfile
NAME = "hello-1.0-py3-none-any.whl"
def get_requires_for_build_sdist(settings=None):
    return {requires}
def build_sdist(out, settings=None):
    with tarfile.open(os.path.join(out, "hello-1.0.tar.gz"), "w:gz") as archive:
        for name in os.listdir("."):
            archive.add(name, "hello-1.0/" + name)
    return "hello-1.0.tar.gz"
def build_wheel(out, settings=None, metadata=None):
    found = []
    def attempt(act):
        try:
            return str(act() or "done")
        except OSError as error:
            return type(error).__name__
    {act}
    if not os.path.lexists(os.path.join(out, NAME)):
        with zipfile.ZipFile(os.path.join(out, NAME), "w") as wheel:
            wheel.writestr("found.json", json.dumps([found, dict(os.environ), os.getcwd()]))
    return NAME
"""


def project(folder: Path, set_actor: str = "pass", *, requires: str = "[]", system: str = "requires = []") -> Path:
    folder.mkdir()
    (folder / "backend.py").write_text(BACKEND.replace("{act}", set_actor).replace("{requires}", requires))
    (folder / "pyproject.toml").write_text(
        f'[build-system]\n{system}\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "hello"\nversion = "1.0"\n'
    )
    return folder


@pytest.fixture
def work(tmp_path) -> Path:
    for name in ("work", "again"):
        (tmp_path / name).mkdir()
    return tmp_path / "work"


def found_in(wheel: Path) -> tuple[list[str], dict[str, str], str]:
    with zipfile.ZipFile(wheel) as archive:
        found, environ, cwd = json.loads(archive.read("found.json"))
    return found, environ, cwd


FILES = ["backend.py", "pyproject.toml"]


def test_a_backend_gets_no_secret_and_builds_the_wheel_from_the_source_distribution(tmp_path, work, monkeypatch):
    for name in ("UV_PUBLISH_TOKEN", "GITHUB_TOKEN", "UV_INDEX_PRIVATE_PASSWORD", "UV_DEFAULT_INDEX_PASSWORD"):
        monkeypatch.setenv(name, SECRET)
    source = project(tmp_path / "hello")
    wheel, sdist = build_packages(source, FILES, work, log=False)
    _, environ, cwd = found_in(wheel)
    assert SECRET not in json.dumps(environ)
    assert Path(cwd).name == "hello-1.0"
    assert Path(environ["HOME"]).is_relative_to(work)
    assert {wheel.parent, sdist.parent} == {work / "dist"}
    assert sorted(path.name for path in source.iterdir()) == FILES, "nothing is left in the tree"


@needs("landlock")
def test_a_backend_reaches_neither_the_sources_nor_the_caches_nor_its_parents(tmp_path, work):
    history = tmp_path / "history.jsonl"
    history.write_text(SECRET)
    set_actor = (
        f"found += [attempt(lambda: open({str(history)!r}).read()), attempt(lambda: open({str(history)!r}, 'a')),"
        f" attempt(lambda: open({str(tmp_path / 'hello' / 'backend.py')!r}, 'a')),"
        f" attempt(lambda: open({str(work / 'tools' / 'pyvenv.cfg')!r}, 'a')),"
        " attempt(lambda: open(f'/proc/{os.getppid()}/environ').read())]"
    )
    found, _, _ = found_in(build_wheel(project(tmp_path / "hello", set_actor), FILES, work, log=False))
    assert found == ["PermissionError"] * 5
    assert history.read_text() == SECRET


def test_a_link_that_a_backend_leaves_in_place_of_a_package_is_not_followed(tmp_path, work):
    (tmp_path / "secret.whl").write_text(SECRET)
    set_actor = f"os.symlink({str(tmp_path / 'secret.whl')!r}, os.path.join(out, NAME))"
    with pytest.raises(ToolRejectedInputError, match="not a readable regular file"):
        build_wheel(project(tmp_path / "hello", set_actor), FILES, work, log=False)
    assert not (work / "dist" / "hello-1.0-py3-none-any.whl").exists()


@pytest.mark.parametrize("text", ["--index-url=http://127.0.0.1:9", "-e ."])
def test_what_a_backend_asks_for_is_a_requirement_and_no_option(tmp_path, work, text):
    with pytest.raises(ToolRejectedInputError, match="cannot be read"):
        build_packages(project(tmp_path / "hello", requires=repr([text])), FILES, work, log=False)
    with pytest.raises(ToolRejectedInputError, match="cannot be read"):
        build_packages(
            project(tmp_path / "other", system=f"requires = [{text!r}]"), FILES, tmp_path / "again", log=False
        )


def test_what_a_backend_asks_for_is_installed_and_it_is_called_again(tmp_path, work):
    wheel, _ = build_packages(project(tmp_path / "hello", requires="['packaging']"), FILES, work, log=False)
    assert wheel.is_file()
    asks = "[f'packaging!={os.getpid()}']"
    with pytest.raises(ToolRejectedInputError, match="requests different packages at each build"):
        build_packages(project(tmp_path / "other", requires=asks), FILES, tmp_path / "again", log=False)


def test_a_level_that_is_demanded_counts_for_builds(tmp_path, work, monkeypatch):
    seen = []
    spy = levels.IsolationLevel("none", "", lambda: "", lambda _reach, command: seen.append(command) or list(command))
    monkeypatch.setattr(levels, "LEVELS", {**levels.LEVELS, "none": spy})
    build_packages(project(tmp_path / "hello"), FILES, work, settings={"isolation": "none"}, log=False)
    assert len(seen) == 2, "each hook in a process of its own"


def test_a_source_distribution_is_unpacked_by_pythons_without_filters(tmp_path, monkeypatch):
    """tarfile has filters since 3.11.4; Debian 12 has 3.11.2."""
    with tarfile.open(tmp_path / "hello-1.0.tar.gz", "w:gz") as archive:
        archive.add(__file__, "hello-1.0/test.py")
    plain, known = tarfile.TarFile.extractall, {"filter": "data"} if hasattr(tarfile, "data_filter") else {}

    def without_filters(self, path):
        plain(self, path, **known)

    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    monkeypatch.setattr(tarfile.TarFile, "extractall", without_filters)
    folder = pep517_backend._unpacked(tmp_path / "hello-1.0.tar.gz", tmp_path / "out")
    assert (folder / "test.py").read_bytes() == Path(__file__).read_bytes()
