"""Making a workspace, in a new folder and in a repository that is there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.cli.terminal_capture import run
from tests.system import git

WORKFLOW = ".github/workflows/mcpfactory.yml"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but git's own."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {
        path: file.read_bytes()
        for file in files
        if not (path := file.relative_to(folder).as_posix()).startswith(".git/")
    }


@pytest.fixture
def repository(empty):
    """Somebody's package, tracked on a branch of its own name."""
    git(empty.folder, "init", "-q", "-b", "trunk")
    (empty.folder / "pyproject.toml").write_text('[project]\nname = "theirs"\nversion = "1"\n')
    (empty.folder / ".gitignore").write_text("*.log\n.venv")
    (empty.folder / "README.rst").write_text("mine")
    (empty.folder / "src").mkdir()
    (empty.folder / "src/a.py").write_text("a = 1\n")
    git(empty.folder, "add", "-A")
    git(empty.folder, "commit", "-qm", "theirs")
    return empty


def test_init_makes_a_workspace_in_a_repository(empty):
    done = empty("init", "ws", "--factory", "index", "--json")
    assert done.code == 0
    assert done.data["workspace"] == "ws"
    assert "that it is your package" in empty("init", "other", "--factory", "index").err
    made = {path.name for path in (empty.folder / "ws").iterdir()}
    assert {"mcpfactory.toml", "pyproject.toml", "servers", "pipeline", ".git", ".gitattributes"} <= made


def test_init_again_changes_nothing(empty):
    empty("init", "ws", "--factory", "index")
    file = empty.folder / "ws" / "mcpfactory.toml"
    file.write_text(file.read_text() + "# mine\n")
    before = contents(empty.folder)
    again = empty("init", "ws", "--json")
    assert (again.code, again.data["changes"], again.data["factory"]) == (0, [], "index")
    assert contents(empty.folder) == before


def test_a_folder_with_other_things_is_left_alone_until_somebody_says_yes(empty):
    (empty.folder / "notes.txt").write_text("mine")
    done = empty("init", ".", "--factory", "index")
    assert done.code == 2
    assert "notes.txt" in done.err
    assert "--yes" in done.err
    assert list(contents(empty.folder)) == ["notes.txt"]
    assert empty("init", ".", "--factory", "index", "--yes").code == 0
    assert (empty.folder / "notes.txt").read_text() == "mine"


def test_a_dry_run_says_what_an_existing_repository_lacks_and_does_nothing(repository):
    before = contents(repository.folder)
    done = repository("init", ".", "--factory", "index", "--dry-run", "--json")
    assert done.code == 0
    changes = {change["path"]: change["action"] for change in done.data["changes"]}
    assert changes == {
        "mcpfactory.toml": "write", ".gitignore": "add", ".gitattributes": "write", WORKFLOW: "write",
        "servers/.gitkeep": "write", "pipeline/state/.gitkeep": "write", "pipeline/history/.gitkeep": "write",
        "pyproject.toml": "tell", "CODEOWNERS": "tell",
    }  # fmt: skip
    assert contents(repository.folder) == before
    text = repository("init", ".", "--factory", "index", "--dry-run")
    assert "add     .gitignore" in text.out
    assert "is a separate package" in text.out


@pytest.mark.parametrize(("answer", "code", "made"), [("y\n", 0, True), ("n\n", 1, False)])
def test_at_a_terminal_it_shows_what_it_would_do_and_asks(repository, answer, code, made):
    command = ("init", ".", "--factory", "index")
    done = run(command, repository.folder, terminal=True, typed=answer)
    assert done.code == code
    assert ".gitignore" in done.text.partition("Continue?")[0]
    assert ("nothing was changed" in done.text, (repository.folder / "mcpfactory.toml").exists()) == (not made, made)


def test_an_existing_repository_gets_what_it_lacks_and_keeps_what_is_there(repository):
    before = contents(repository.folder)
    assert repository("init", ".", "--factory", "index", "--yes").code == 0
    after = contents(repository.folder)
    changed = [path for path, data in before.items() if after[path] != data]
    assert changed == [".gitignore"]
    assert after[".gitignore"].startswith(b"*.log\n.venv\n# mcpfactory:\n/pipeline/artifacts/\n")
    assert b"/servers/**/.venv/" not in after[".gitignore"], "their own line says it"
    assert "README.md" not in after
    assert tomllib.loads(after["mcpfactory.toml"].decode())["ci"]["branch"] == "trunk"
    assert b"branches: [trunk]" in after[WORKFLOW]
    assert git(repository.folder, "diff", "--name-only") == ".gitignore"
    assert repository("inspect").code == 0


def test_the_projects_of_a_repository_that_is_no_package_get_members_and_the_runtime(empty):
    (empty.folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 99\n")
    assert empty("init", ".", "--yes", "--factory", "git+https://host.example/factory@v1").code == 0
    text = (empty.folder / "pyproject.toml").read_text()
    assert text.startswith("[tool.ruff]\nline-length = 99\n\n#")
    data = tomllib.loads(text)["tool"]
    assert data["uv"]["workspace"]["members"] == ["servers/*"]
    assert data["uv"]["sources"]["mcpfactory-runtime"]["rev"] == "v1"
    before = contents(empty.folder)
    assert empty("init", ".").code == 0
    assert contents(empty.folder) == before


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("servers", "a file", "servers is a file"),
        ("pipeline/state/ours.json", "{}", "contains unrelated files (ours.json)"),
        ("mcpfactory.toml", '[server]\nname = "a"\npackage = "a"\n', "belongs to a server"),
        ("pyproject.toml", "[project", "cannot be read"),
        (".github/workflows/mcpfactory.yml/x", "a folder", "is a folder"),
    ],
)
def test_what_is_in_the_way_is_told_and_nothing_is_written(empty, path, text, told):
    (empty.folder / path).parent.mkdir(parents=True, exist_ok=True)
    (empty.folder / path).write_text(text)
    before = contents(empty.folder)
    for option in ("--yes", "--dry-run"):
        done = empty("init", ".", "--factory", "index", option)
        assert done.code == 4
        assert told in done.err + done.out
    assert "hint:" in empty("init", ".", "--factory", "index", "--yes").err
    assert contents(empty.folder) == before
