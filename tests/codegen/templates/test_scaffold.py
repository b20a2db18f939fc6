"""Templates: those that are shipped work at once, those of users may not run anything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mcpfactory_codegen.servers import scaffold
from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_codegen.servers.generation import CreateError
from mcpfactory_codegen.servers.scaffold import render, templates
from mcpfactory_codegen.servers.templates import TemplateSourceError


def template(folder: Path, settings: str, **files: str) -> Path:
    (folder / "copier.yml").parent.mkdir(parents=True, exist_ok=True)
    (folder / "copier.yml").write_text(settings)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_the_shipped_templates_are_listed_with_a_sentence_each() -> None:
    assert {"minimal", "openapi"} <= {one.name for one in templates()}
    assert all(one.about.endswith(".") for one in templates())


def test_a_server_without_a_document_is_left_as_it_is(tmp_path: Path) -> None:
    created = create_server(tmp_path, name="words", template="minimal")
    again = regenerate(created.path)
    assert (again.server, again.steps, again.tools) == ("words", (), 0)


def test_a_users_own_template_is_used_by_its_folder(tmp_path: Path) -> None:
    own = template(tmp_path / "own", "name:\n  type: str\n", hello__txt__jinja="Hello {{ name }}")
    assert render(str(own), {"name": "you"})["hello.txt"] == "Hello you"
    created = create_server(tmp_path / "servers", name="mine", template=str(own))
    assert (created.path / "hello.txt").read_text() == "Hello mine"


def test_an_answer_is_text_and_never_a_template(tmp_path: Path) -> None:
    own = template(tmp_path, "name:\n  type: str\nabout:\n  type: str\n", a__txt__jinja="{{ name }}|{{ about }}")
    tricky = "{{ 7 * 7 }}{% set x = 1 %}"
    assert render(str(own), {"name": tricky, "about": tricky})["a.txt"] == f"{tricky}|{tricky}"


@pytest.mark.parametrize(
    "settings",
    [
        "_tasks:\n  - touch {marker}\n",
        "_migrations:\n  - version: v1\n    command: touch {marker}\n_jinja_extensions:\n  - os.path\n",
        "_jinja_extensions:\n  - subprocess.Popen\n",
        "not: [valid",
    ],
)
def test_a_template_that_wants_to_run_something_is_refused(tmp_path: Path, settings: str) -> None:
    marker = tmp_path / "ran"
    own = template(tmp_path / "own", settings.replace("{marker}", str(marker)), a__txt="a")
    with pytest.raises(TemplateSourceError) as raised:
        render(str(own), {})
    assert raised.value.hint
    assert not marker.exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # copier leaves a folder listing open
def test_a_template_cannot_write_outside(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "copier.yml").write_text('name:\n  type: str\n  default: "../../escaped"\n')
    (own / "{{ name }}.txt").write_text("x")
    with pytest.raises(TemplateSourceError):
        render(str(own), {})


def test_a_template_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(CreateError) as raised:
        create_server(tmp_path, name="a", template="nope")
    assert raised.value.code == "template"
    assert "minimal" in raised.value.hint


def test_copier_is_loaded_only_when_a_template_is_rendered() -> None:
    program = "import sys, mcpfactory_codegen.servers.create, mcpfactory_codegen.servers.scaffold as s; s.templates(); print('copier' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def loop(own: Path) -> None:
    (own / "again").symlink_to(own)


def pipe(own: Path) -> None:
    os.mkfifo(own / "a.txt")


def outside(own: Path) -> None:
    (own / "a.txt").symlink_to("/etc/hostname")


def endless(own: Path) -> None:
    (own / "a.txt.jinja").write_text("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")


def huge(own: Path) -> None:
    (own / "a.txt.jinja").write_text('{{ ("x" * 99999) * 99999 }}')


def heavy(own: Path) -> None:
    with (own / "a.txt").open("wb") as file:
        file.truncate(1 << 26)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (loop, "again is a link, a pipe or a device"),
        (pipe, "a link, a pipe or a device"),
        (outside, "a link, a pipe or a device"),
        (endless, "timed out after 3 seconds"),
        (huge, r"too much memory or time|timed out after"),  # which comes first is the machine's affair
        (heavy, "more than 33554432 bytes"),
    ],
)
def test_a_template_that_is_no_folder_of_small_plain_files_is_refused_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None], says: str
) -> None:
    monkeypatch.setattr(scaffold, "render_in_subprocess", partial(scaffold.render_in_subprocess, seconds=3))
    own = template(tmp_path / "own", "name:\n  type: str\n")
    spoil(own)
    with pytest.raises(TemplateSourceError, match=says) as raised:
        render(str(own), {"name": "x"})
    assert raised.value.hint
    assert "required" not in str(raised.value)


@pytest.mark.parametrize("name", [".GIT", ".git.", ".git ", ".gi\u200bt", "git~1", ".git::$INDEX_ALLOCATION"])
def test_no_part_of_what_a_template_makes_is_gits_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(scaffold, "render_in_subprocess", scaffold.render_in_process)
    own = template(tmp_path / "own", "name:\n  type: str\n")
    place = own / f"{{{{ {name!r} }}}}"
    place.mkdir()
    (place / "config").write_text("[core]\n")
    with pytest.raises(TemplateSourceError, match="reserved for Git"):
        render(str(own), {"name": "x"})


def test_a_template_makes_no_repository_without_gits_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git takes a folder with HEAD, objects and refs for a repository, and runs what its configuration says."""
    monkeypatch.setattr(scaffold, "render_in_subprocess", scaffold.render_in_process)
    own = template(tmp_path / "own", "name:\n  type: str\n")
    for file in ("HEAD", "config", "objects/keep", "refs/keep"):
        (own / file).parent.mkdir(exist_ok=True)
        (own / file).write_text("x\n")
    with pytest.raises(TemplateSourceError, match="into a Git repository"):
        render(str(own), {"name": "x"})
    (own / "refs/keep").unlink()
    (own / "refs").rmdir()
    assert "HEAD" in render(str(own), {"name": "x"})


def test_the_repository_of_a_template_runs_nothing(tmp_path: Path) -> None:
    own, marker = template(tmp_path / "own", "name:\n  type: str\n", a__txt="a"), tmp_path / "ran"
    subprocess.run(["git", "init", "-q", str(own)], check=True)
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {marker}\n")
    monitor.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(monitor)], cwd=own, check=True)
    subprocess.run(["git", "add", "-A"], cwd=own, check=True)
    marker.unlink(missing_ok=True)
    assert render(str(own), {"name": "x"}) == {"a.txt": "a"}
    assert not marker.exists()
