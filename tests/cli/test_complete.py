"""Shell completion, driven as bash, zsh and fish drive it: by variables of the environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcpfactory import completion
from mcpfactory_pipeline.stages import STAGES
from tests.cli.recorded_workspaces import make
from tests.timeouts import TIMEOUT

SHOW = "; import sys; print('\\nLOADED', *sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
PROGRAM = f"from mcpfactory.main import main\ntry: main()\nfinally: exec({SHOW[2:]!r})"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a stage and channels of its own, and a server with two tools."""
    space = make(tmp_path_factory.mktemp("complete") / "ws", "books", "bikes", "tea")
    with (space.root / "mcpfactory.toml").open("a") as file:
        file.write(
            '[[pipeline.stages]]\nname = "licences"\ncommand = ["true"]\n'
            '[[pipeline.channels]]\nname = "early"\n[[pipeline.channels]]\nname = "late"\nfrom = "early"\n'
        )
    report = space.root / "servers/books/.mcpfactory/report.json"
    report.parent.mkdir()
    report.write_text(json.dumps({"tools": [{"name": "get_book"}, {"name": "add_book"}]}))
    return space.root


def completed(folder: Path, shell: str, typed: str) -> tuple[list[str], set[str]]:
    """What a shell is offered for a line that ends where the cursor is, and the packages that were loaded for it."""
    words = typed.split(" ")
    asked = {
        "bash": {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": typed},
        "fish": {"_TYPER_COMPLETE_ARGS": typed, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, env={**os.environ, "_MCPFACTORY_COMPLETE": f"complete_{shell}", **asked},
        capture_output=True, text=True, check=False, timeout=TIMEOUT,
    )  # fmt: skip
    loaded = set(done.stderr.partition("LOADED")[2].split())
    found = (
        re.findall(r'^(?:_arguments .*\(\()?"([^"]+)"', done.stdout, re.M) if shell == "zsh" else done.stdout.split()
    )
    return found, loaded


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_offered_the_servers_of_the_workspace_and_nothing_heavy_is_loaded(folder: Path, shell: str) -> None:
    found, loaded = completed(folder, shell, "mcpfactory inspect b")
    assert found == ["bikes", "books"]
    assert "typer" in loaded
    assert loaded & {"mcpfactory_pipeline", "mcpfactory_codegen", "rich", "httpx", "jinja2"} == set()


def test_a_shell_is_offered_the_tools_of_the_server_that_was_typed(folder: Path) -> None:
    assert completed(folder, "bash", "mcpfactory call books ")[0] == ["get_book", "add_book"]


@pytest.mark.parametrize(
    ("names", "typed", "found"),
    [
        (completion.servers, "t", ["tea"]),
        (completion.stages, "", [*(stage.name for stage in STAGES[:-1]), "licences", "early"]),
        (completion.channels, "l", ["late"]),
        (completion.clients, "cursor", ["cursor"]),
        (completion.templates, "mini", ["minimal"]),
    ],
)
def test_each_kind_of_name_is_known(
    folder: Path, monkeypatch: pytest.MonkeyPatch, names: object, typed: str, found: list[str]
) -> None:
    monkeypatch.chdir(folder / "servers/tea")
    assert callable(names)
    assert names(typed) == found


def test_names_that_are_written_down_for_completion_are_those_that_exist() -> None:
    from mcpfactory_pipeline.delivery.clients.client_profiles import CLIENTS

    assert completion.clients("") == [client.id for client in CLIENTS]
    names = [stage.name for stage in STAGES]
    assert completion.stages("")[: len(names)] == names, (
        "write the names into _STAGES of factory/cli/src/mcpfactory/completion.py"
    )
