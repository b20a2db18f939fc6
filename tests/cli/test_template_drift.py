"""The template of a server moves on: the inbox says so until the person's files were merged with it, whatever else runs."""

from __future__ import annotations

import shutil

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.init import init_workspace
from tests.cli.conftest import ROOT


def test_a_template_that_moved_on_is_told_until_update_merged_it_and_a_run_does_not_settle_it(empty, tmp_path):
    shell = empty.at(init_workspace(tmp_path / "ws", git=False).root)
    template = shell.folder / "templates/ours"
    shutil.copytree(ROOT / "templates/minimal", template)
    create_server(shell.folder / "servers", name="notes", template=str(template))

    with next(template.rglob("README.md.jinja")).open("a") as file:
        file.write("\nNews of the template.\n")

    def drift() -> list[tuple[str, str]]:
        items = shell("inbox", "--json").data
        return [(item["about"], item["command"]) for item in items if item["kind"] == "drift"]

    assert shell("pipeline", "run", "notes", "--until", "generate").code == 0
    assert drift() == [("template", "mcpfactory update notes")]
    assert shell("update", "notes").code == 0
    assert "News of the template." in (shell.folder / "servers/notes/README.md").read_text()
    assert drift() == []
