"""Templates: those that are shipped work at once, those of users may not run anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcpfactory_codegen.servers.create import CreateError, create_server, regenerate
from mcpfactory_codegen.servers.scaffold import ScaffoldError, render, templates

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
    with pytest.raises(ScaffoldError) as raised:
        render(str(own), {})
    assert raised.value.hint
    assert not marker.exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # copier leaves a folder listing open
def test_a_template_cannot_write_outside(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "copier.yml").write_text('name:\n  type: str\n  default: "../../escaped"\n')
    (own / "{{ name }}.txt").write_text("x")
    with pytest.raises(ScaffoldError):
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
