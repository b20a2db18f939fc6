"""Settings: each is described and used, and files and docs contain only valid ones."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from benchmarks.codebase.source import Source
from docs.pages.settings import settings_reference
from mcpfactory.commands.init import settings_schema
from mcpfactory_codegen.servers.config import ServerConfig
from mcpfactory_codegen.settings import SettingsError, find_toml_line, read_settings
from mcpfactory_pipeline.workspace.settings import WorkspaceSettings
from mcpfactory_pipeline.workspace.waivers import WaiverFile
from tests.repository.markdown_pages import Page
from tests.subtest_table import parametrize_subtests

DECLARED = ("servers/config.py", "curation.py", "workspace/settings.py", "workspace/policy.py", "workspace/waivers.py")

FILES = {"root": WorkspaceSettings, "server": ServerConfig, "waivers": WaiverFile}


def tables(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables of a file: the name of each model, and its JSON Schema."""
    schema = settings_schema(kind)
    yield FILES[kind].__name__, schema
    yield from schema["$defs"].items()


FIELDS = {
    f"{model}.{name}": field
    for kind in FILES
    for model, table in tables(kind)
    for name, field in table.get("properties", {}).items()
}


def test_every_setting_has_a_description():
    assert len(FIELDS) > 150
    assert [name for name, field in FIELDS.items() if not field.get("description")] == []


def test_every_setting_is_read(modules: list[Source]):
    read = {
        node.attr if isinstance(node, ast.Attribute) else node.value
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.Attribute | ast.Constant) and (not is_declared(module) or is_own(node))
    }
    python = {"from": "source", "gates": "limits", "api": "apis"}  # the attribute, where it has another name
    unread = [name for name in FIELDS if python.get(key := name.split(".")[1], key) not in read]
    for name in unread:
        table = name.split(".")[0]
        others = "|".join(one.split(".")[1] for one in FIELDS if one.startswith(f"{table}."))
        uses = re.compile(rf"\bsettings(\.\w+)*\.({others})\b")
        places = [module.path for module in modules if not is_declared(module) and uses.search(module.text)]
        pytest.fail(f"nothing reads {name}; keys of its table are read in {', '.join(places)}")


def is_own(node: ast.AST) -> bool:
    """Return True for an attribute of `self`: properties and validators of a model."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def is_declared(module: Source) -> bool:
    return module.path.endswith(DECLARED)


def files(root: Path) -> list[tuple[str, Path]]:
    servers = [("server", file) for file in sorted(root.glob("servers/*/mcpfactory.toml"))]
    return [("root", root / "mcpfactory.toml"), *servers]


def test_the_files_of_this_repository_are_valid(root: Path):
    assert len(files(root)) > 5
    judges = {name: jsonschema.Draft202012Validator(settings_schema(name)) for name in (*FILES, "")}
    for judge in judges.values():
        judge.check_schema(judge.schema)
    for kind, file in files(root):
        data = tomllib.loads(file.read_text("utf-8"))
        judges[kind].validate(data)
        judges[""].validate(data)
        assert not judges["server" if kind == "root" else "root"].is_valid(data)


def parts(pages: list[Page]) -> Iterator[tuple[str, str, dict[str, list[str]]]]:
    """The parts of settings files in the documentation: page, text, and what is wrong as each kind of file that they may be."""
    first = {"root": {"workspace": {}}, "server": {"server": {}}, "waivers": {}}
    judges = {kind: jsonschema.Draft202012Validator(settings_schema(kind)) for kind in FILES}
    for page in pages:
        for text in re.findall(r"^```toml\n(.*?)^```$", page.text, re.MULTILINE | re.DOTALL):
            try:
                data = json.loads(json.dumps(tomllib.loads(text), default=str))
            except tomllib.TOMLDecodeError:
                continue
            wrong = {
                kind: [f"{error.json_path}: {error.message}" for error in judge.iter_errors({**first[kind], **data})]
                for kind, judge in judges.items()
                if data and set(data) <= set(judge.schema["properties"])
            }
            if wrong:
                yield page.name, text, wrong


def test_what_the_documentation_shows_is_valid(pages: list[Page]):
    shown = list(parts(pages))
    assert len(shown) > 20
    for page, text, wrong in shown:
        assert [] in wrong.values(), f"{page}: {wrong}:\n{text}"


def test_the_reference_page_has_every_key():
    page = settings_reference()
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    places = re.findall(r"^### `\[+([^\]]+)\]+`", page, re.MULTILINE)
    keys = {*rows, *(part for place in places for part in place.split("."))} - {"<name>"}
    assert {name.rpartition(".")[2] for name in FIELDS} == keys


TEXT = """\
[workspace] # first
name = "w"

[pipeline]
backoff = 1

[[pipeline.channels]]
name = "a"
gates = { min_score = 1 }

[[pipeline.channels]]
name = "b"
"from" = "a"
approvers = [
  "x",
  "y",
]
[pipeline.channels.gates]
contract = true
"""


@parametrize_subtests(
    "keys, line",
    [
        (("workspace", "name"), 2),
        (("workspace",), 1),
        (("pipeline", "backoff"), 5),
        (("pipeline", "attempts"), 4),
        (("pipeline", "channels"), 7),
        (("pipeline", "channels", 0, "gates", "min_score"), 9),
        (("pipeline", "channels", 1, "from"), 13),
        (("pipeline", "channels", 1, "approvers", 1), 14),
        (("pipeline", "channels", 1, "gates", "contract"), 19),
        (("elsewhere",), 1),
    ],
)
def test_a_key_is_found_in_its_line(keys: tuple[str | int, ...], line: int) -> None:
    assert find_toml_line(TEXT, keys) == line


@parametrize_subtests(
    "text, said, hint",
    [
        ("[pipelin]\n", "f:2: unknown field 'pipelin'", "did you mean 'pipeline'?"),
        ("[ci]\njobs = 300\n", "f:3: ci.jobs: 300 is not valid", "use a number from 1 to 256"),
        ("[ci]\njobs = 'x'\n", "f:3: ci.jobs: must be a whole number", "jobs = 1"),
        ("[ci]\njob = 3\n", "f:3: ci: unknown field 'job'", "did you mean 'jobs'?"),
        ("[pipeline]\nisolation = 'best'\n", 'f:3: pipeline.isolation: "best" is not valid', "values: auto, required"),
        ("[release]\n", "f:2: release: packages is missing", 'packages = ["packages/one", "packages/two"]'),
        ("[owners]\n'a*' = 'Ada'\n", 'f:3: owners."a*": must be a list of strings', '["'),
    ],
)
def test_an_error_names_line_key_and_correction(text: str, said: str, hint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(FILES["root"], f"[workspace]\n{text}", "f")
    assert str(caught.value) == said
    assert hint in caught.value.hint
