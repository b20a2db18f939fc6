"""`mcpfactory template`: templates listed, shown, begun and checked; one of somebody else is shown before it is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.system import git


@pytest.fixture
def workspace(cli):
    assert cli("init", "ws", "--factory", "index").code == 0
    return cli.at(cli.folder / "ws")


@pytest.fixture
def repository(tmp_path: Path) -> str:
    """The source of a template in a repository of git."""
    folder = tmp_path / "theirs"
    (folder / "template").mkdir(parents=True)
    (folder / "copier.yml").write_text(
        "# Servers that greet.\n_subdirectory: template\nname:\n  type: str\nword:\n  type: str\n  choices: [Hello, Welcome]\n  default: Hello\n"
    )
    (folder / "template" / "hello.txt.jinja").write_text("{{ word }} {{ name }}")
    for command in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "first")):
        git(folder, *command)
    return f"git+file://{folder}"


def test_shipped_templates_and_those_of_the_workspace_are_listed(workspace):
    assert workspace("template", "new", "ours").code == 0
    rows = {row["template"]: row for row in workspace("template", "list", "--json").data}
    assert rows["minimal"]["where"] == "shipped"
    assert rows["ours"] == {"template": "ours", "about": "Servers from the template ours.", "where": "workspace"}
    assert "ours" in workspace("template", "list").out


def test_a_template_is_shown_and_nothing_is_made(workspace, repository):
    about = workspace("template", "show", repository, "--json").data
    assert about["origin"].startswith("commit ")
    assert about["files"] == ["hello.txt", "mcpfactory.toml"]
    assert [(one["name"], one["choices"]) for one in about["questions"]] == [("word", ["Hello", "Welcome"])]
    assert about["refused"] == []
    assert list((workspace.folder / "servers").glob("*/")) == []
    assert "hello.txt" in workspace("template", "show", repository).out
    assert "tools" not in workspace("template", "show", "openapi").err


def test_what_would_run_something_is_said_to_be_refused(workspace, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "copier.yml").write_text("_tasks: [touch ran]\nname: x\n")
    assert workspace("template", "show", str(own), "--json").data["refused"] == ["_tasks"]
    assert "templates must not run anything" in workspace("template", "show", str(own)).err
    assert workspace("new", "mine", "--template", str(own)).code == 4


def test_a_template_of_somebody_else_is_shown_before_it_is_used(workspace, repository):
    refused = workspace("new", "mine", "--template", repository)
    assert refused.code == 2
    assert "hello.txt" in refused.err
    assert "--trust" in refused.err
    assert not (workspace.folder / "servers/mine").exists()
    assert workspace("new", "mine", "--template", repository, "--dry-run").code == 0
    made = workspace("new", "mine", "--template", repository, "--trust", "--answer", "word=Welcome")
    assert made.code == 0
    assert (workspace.folder / "servers/mine/hello.txt").read_text() == "Welcome mine"
    assert workspace("update", "mine").code == 0
    assert workspace("update", "mine", "--template", f"{repository}@main").code == 2
    assert workspace("update", "mine", "--template", f"{repository}@main", "--trust").code == 0
    assert f"{repository}@main" in (workspace.folder / "servers/mine/mcpfactory.toml").read_text()


def test_an_answer_must_be_one_of_the_choices(workspace, repository):
    wrong = workspace("new", "c", "--template", repository, "--trust", "--answer", "word=Hi")
    assert wrong.code == 4
    assert "one of Hello, Welcome" in wrong.err


def test_a_template_begins_with_files_that_work(workspace):
    assert workspace("template", "new", "Ours").code == 2
    assert workspace("template", "new", "ours").code == 0
    assert workspace("template", "new", "ours").code == 4
    assert workspace("new", "mine", "--template", "templates/ours").code == 0
    assert 'template = "../../templates/ours"' in (workspace.folder / "servers/mine/mcpfactory.toml").read_text()


def test_a_check_names_what_is_wrong_in_which_variant(workspace, tmp_path):
    own = tmp_path / "own"
    (own / "template").mkdir(parents=True)
    (own / "copier.yml").write_text(
        "_subdirectory: template\nname:\n  type: str\nkind:\n  type: str\n  choices: [good, broken]\n  default: good\n"
    )
    (own / "template" / "a.py.jinja").write_text("{% if kind == 'broken' %}import os{% else %}A = 1{% endif %}\n")
    checked = workspace("template", "check", str(own), "--json")
    assert checked.code == 1
    steps = {(one["variant"], one["step"]): one for one in checked.data["steps"]}
    assert steps["defaults", "lint"]["good"]
    assert not steps["kind=broken", "lint"]["good"]
    assert "F401" in steps["kind=broken", "lint"]["message"]
    assert not steps["defaults", "build"]["good"]  # there is no pyproject.toml
    assert json.dumps(checked.data).count("kind=broken") >= 2
