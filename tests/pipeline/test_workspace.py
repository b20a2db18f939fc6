from __future__ import annotations

import subprocess
import tomllib

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.delivery.publish.publish import TARGETS
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.plan.gates import GATES
from mcpfactory_pipeline.workspace.policy import GateLimits
from mcpfactory_pipeline.workspace.settings import PipelineSettings, TargetTables
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import add_server


def test_a_new_workspace_has_all_its_files_and_a_repository(tmp_path):
    made = apply_setup(plan_workspace_setup(tmp_path / "my-servers", 'Team "A"'))
    assert made.name == 'Team "A"'
    files = {path.relative_to(made.root).as_posix() for path in made.root.rglob("*") if ".git/" not in f"{path}/"}
    assert {
        "mcpfactory.toml", "pyproject.toml", "README.md", ".gitignore", ".gitattributes", "servers/.gitkeep",
        "pipeline/state/.gitkeep", "pipeline/history/.gitkeep", ".github/workflows/mcpfactory.yml",
    } <= files  # fmt: skip
    assert tomllib.loads((made.root / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]["members"] == [
        "servers/*"
    ]
    assert "pipeline/history/*.jsonl -text merge=union" in (made.root / ".gitattributes").read_text()
    assert "mcpfactory ci matrix" in (made.root / ".github/workflows/mcpfactory.yml").read_text()
    owned = (made.root / "CODEOWNERS").read_text()
    for path in ("/pipeline/history/", "/pipeline/state/", "/mcpfactory.toml", "/servers/*/waivers.toml", "/.github/"):
        assert f"{path} @OWNER" in owned
    assert (made.root / ".git").is_dir()
    assert Workspace.find(made.root).settings.pipeline == PipelineSettings()


def test_an_existing_gitattributes_gets_the_missing_lines(tmp_path):
    file = tmp_path / ".gitattributes"
    file.write_text("*.png binary\nservers/** -text\n")
    apply_setup(plan_workspace_setup(tmp_path), git=False)
    assert file.read_text().splitlines() == [
        "*.png binary",
        "servers/** -text",
        "# mcpfactory:",
        "pipeline/history/*.jsonl -text merge=union linguist-generated",
        "pipeline/state/*.json -text merge=union linguist-generated",
    ]


def test_state_is_tracked_and_artifacts_are_not(tmp_path):
    root = apply_setup(plan_workspace_setup(tmp_path / "space")).root
    for path in ("pipeline/state/a.json", "pipeline/history/a.jsonl", "pipeline/artifacts/x", "pipeline/locks/x"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("x")
    seen = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert "pipeline/state/a.json" in seen
    assert "pipeline/history/a.jsonl" in seen
    assert "artifacts" not in seen
    assert "locks" not in seen


def test_the_workspace_is_found_from_far_below_and_past_a_servers_own_file(workspace):
    folder = add_server(workspace.root, "deep") / "src" / "p"
    folder.mkdir(parents=True)
    assert Workspace.find(folder).root == workspace.root


def test_servers_are_folders_with_a_configuration_in_the_order_of_their_names(workspace):
    for name in ("b", "a"):
        add_server(workspace.root, name)
    (workspace.root / "servers" / "not-one").mkdir()
    assert [server.name for server in workspace.servers()] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[server", "is not TOML"),
        ("", "server is missing"),
        ('[server]\npackage = "p"\nname = 3', r"server\.name: must be a string"),
        ('[server]\npackage = "p"\nname = "other"', "but the folder is 'a'"),
        ('[server]\npackage = "no-name"', "'no-name' is not a valid import name"),
        ('[server]\npackage = "p; import os"', "is not a valid import name"),
        ('[server]\npackage = "p"\n[api]\ndocument = "../../secret"', "is outside the server's folder"),
        ('[server]\npackage = "p"\n[api]\ndocument = 3', r"api\.document: must be a string"),
    ],
)
def test_a_bad_server_configuration_is_named_with_what_mends_it(workspace, text, message):
    folder = add_server(workspace.root, "a")
    (folder / "mcpfactory.toml").write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        workspace.server("a")
    assert str(folder / "mcpfactory.toml") in str(caught.value)
    assert caught.value.hint


def test_a_link_below_servers_is_no_server_wherever_it_leads(workspace, tmp_path):
    add_server(workspace.root, "a")
    elsewhere = add_server(tmp_path / "elsewhere", "b")
    (workspace.root / "servers/b").symlink_to(elsewhere)
    servers, broken = workspace.load_servers()
    assert [server.name for server in servers] == ["a"]
    assert [(one.name, "is a symbolic link" in one.message, one.hint) for one in broken] == [
        ("b", True, "replace the link with the server's folder")
    ]
    with pytest.raises(ConfigError, match="is a symbolic link"):
        workspace.server("b")


def test_options_of_publish_targets_and_limits_of_gates_are_settings():
    fields = TargetTables.model_fields
    options = {name: target.options for name, target in TARGETS.items() if target.options.model_fields}
    assert options == {name: field.annotation for name, field in fields.items()}
    assert set(GATES) == set(GateLimits.model_fields)
