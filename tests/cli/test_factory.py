"""Where jobs and uv take the factory from: recorded once, followed by every file, changed by one command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from mcpfactory import version
from mcpfactory_pipeline.build.factory_distributions import DISTRIBUTIONS
from tests.cli.conftest import CliProcess

TOOLS = "tools/mcpfactory/"
WORKFLOW = ".github/workflows/mcpfactory.yml"
REPOSITORY = "git+https://host.example/factory@1.2.3"

pytestmark = pytest.mark.xdist_group("factory")


@pytest.fixture(scope="module")
def made(tmp_path_factory, document):
    """A workspace as `init` makes it when nobody says where the factory comes from."""
    folder = tmp_path_factory.mktemp("factory")
    done = CliProcess(folder)("init", "ws", "--json")
    assert done.code == 0, done.err
    return folder / "ws", done.data


@pytest.fixture
def shell(made, empty):
    """A copy of it."""
    shutil.copytree(made[0], empty.folder / "ws")
    return empty.at(empty.folder / "ws")


def installs(shell, path: str = WORKFLOW) -> set[str]:
    return {line.strip() for line in (shell.folder / path).read_text().splitlines() if "pip install" in line}


def test_what_a_readme_says_to_type_starts_the_server(shell, document):
    done = shell("new", "hello", "--from-openapi", str(document))
    assert done.code == 0, done.err
    folder = shell.folder / "servers/hello"
    readme = (folder / "README.md").read_text()
    typed = readme.partition("## Run it\n\n```\n")[2].partition("```")[0].splitlines()
    commands = [line.partition("  #")[0].rstrip() for line in typed]
    assert [one.split()[0] for one in commands] == ["mcpfactory", "uv", ".venv/bin/hello-mcp", ".venv/bin/hello-mcp"]
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in commands:
        asked = f"{command.removesuffix(' --http --port 8000')} --version" if command.startswith(".venv") else command
        ran = subprocess.run(
            ["bash", "-c", asked],
            cwd=folder,
            env={**os.environ, "PATH": programs},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, (command, ran.stderr)
        assert ran.stdout == ("hello 0.1.0\n" if command.startswith(".venv") else "")


def test_wheels_of_the_factory_are_kept_where_no_repository_is_known(made):
    root, told = made
    assert told["factory"] == TOOLS
    wheels = sorted(path.name for path in (root / TOOLS).glob("*.whl"))
    assert [name.split("-")[0].replace("_", "-") for name in wheels] == sorted(DISTRIBUTIONS)
    assert tomllib.loads((root / "mcpfactory.toml").read_text())["workspace"]["factory"] == TOOLS
    source = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["uv"]["sources"]["mcpfactory-runtime"]
    assert (root / source["path"]).is_file()


def test_the_jobs_of_both_providers_install_from_there(shell):
    line = (
        f"python -m pip install --require-hashes --only-binary :all: --find-links {TOOLS} -r {TOOLS}requirements.lock"
    )
    assert installs(shell) == {f'- run: "{line}"'}
    assert shell("ci", "--provider", "gitlab").code == 0
    assert installs(shell, ".gitlab/mcpfactory.yml") == {f'- "{line}"'}
    assert shell("ci", "--check").code == 0


def test_another_origin_is_followed_by_all_that_was_written(shell):
    for words in (("--provider", "gitlab"), ("--release",)):
        assert shell("ci", *words).code == 0
    done = shell("ci", "--factory", REPOSITORY, "--json")
    assert done.data["changed"] == [
        "pyproject.toml", "mcpfactory.toml", WORKFLOW, ".github/workflows/mcpfactory-release.yml", ".gitlab/mcpfactory.yml",
    ]  # fmt: skip
    assert "git rm -r tools/mcpfactory/" in done.err
    assert "install packages without hashes" in done.err
    assert "install packages without hashes" in shell("ci", "--check").err
    (line,) = installs(shell)
    assert line.count(REPOSITORY) == len(DISTRIBUTIONS)
    assert shell("ci", "--release", "--check").code == 0
    assert shell("doctor", "--json").data[-1]["message"] == f"jobs install mcpfactory from {REPOSITORY}"
    before = (shell.folder / "mcpfactory.toml").read_text()
    assert shell("ci", "--factory", "index").code == 0
    assert shell("ci", "--factory", REPOSITORY).code == 0
    assert (shell.folder / "mcpfactory.toml").read_text() == before


def test_wheels_of_another_factory_are_told_and_replaced(shell):
    (wheel,) = (shell.folder / TOOLS).glob("mcpfactory_runtime-*")
    fresh = wheel.read_bytes()
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("mcpfactory_runtime/more.py", "")
    told = shell("doctor").out
    assert f"mcpfactory-runtime {version()} has other code" in told
    assert "hint: mcpfactory ci" in told
    stale = shell("ci", "--check")
    assert (stale.code, "has other code" in stale.err) == (1, True)
    assert shell("ci").out == f"wrote {TOOLS}{wheel.name}\n{WORKFLOW} is up to date\n"
    assert wheel.read_bytes() == fresh
    assert shell("ci", "--check").code == 0


def test_a_lock_with_another_hash_is_told_and_replaced(shell):
    lock = shell.folder / TOOLS / "requirements.lock"
    fresh = lock.read_text()
    assert fresh.count("--hash=sha256:") > fresh.count("==") > len(DISTRIBUTIONS)
    lock.write_text(fresh.replace("--hash=sha256:", "--hash=sha256:0", 1))
    stale = shell("ci", "--check")
    assert (stale.code, "requirements.lock is missing or out of date" in stale.err) == (1, True)
    assert shell("ci").out.startswith(f"wrote {TOOLS}requirements.lock\n")
    assert lock.read_text() == fresh
    assert "without hashes" not in shell("ci", "--check").err


def test_wheels_that_git_would_not_track_are_told(shell):
    with (shell.folder / ".gitignore").open("a") as file:
        file.write("*.whl\n")
    told = shell("doctor").out
    assert "git ignores tools/mcpfactory/mcpfactory" in told
    assert "hint: git add --force tools/mcpfactory/mcpfactory" in told
    subprocess.run(["git", "add", "--force", TOOLS], cwd=shell.folder, check=True)
    assert "git ignores" not in shell("doctor").out


def test_without_wheels_nothing_is_written_and_the_error_names_another_way(empty):
    """A factory that is used from its sources builds them, for which it needs a program from a package index."""
    offline = CliProcess(
        empty.folder, {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(empty.folder / "cache"), "UV_FIND_LINKS": ""}
    )
    done = offline("init", "ws")
    assert (done.code, "hint: " in done.err, "--factory git+https" in done.err) == (5, True, True)
    assert not (empty.folder / "ws").exists()


def test_what_is_written_down_wrongly_is_an_error_with_a_hint(shell):
    file = shell.folder / "mcpfactory.toml"
    file.write_text(file.read_text().replace(f'"{TOOLS}"', '"$(rm -rf /)/"'))
    done = shell("ci")
    assert (done.code, "workspace.factory: " in done.err, "hint:" in done.err) == (4, True, True)
    assert shell("doctor").code == 5


def test_init_does_not_change_what_a_workspace_has_chosen(shell):
    done = shell("init", ".", "--factory", "index")
    assert (done.code, "hint: mcpfactory ci --factory index" in done.err) == (4, True)
