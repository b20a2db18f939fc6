"""The template of a server moves on: the inbox says so until the person's files were merged with it, whatever else runs."""

from __future__ import annotations

import shutil

from tests.cli.conftest import ROOT


def test_a_template_that_moved_on_is_told_until_update_merged_it_and_a_run_does_not_settle_it(empty, tmp_path):
    template = tmp_path / "ours"
    shutil.copytree(ROOT / "templates/minimal", template)
    assert empty("init", "ws", "--no-git").code == 0
    shell = empty.at(empty.folder / "ws")
    assert shell("new", "notes", "--template", str(template)).code == 0

    def waiting() -> list[tuple[str, str, str]]:
        assert shell("pipeline", "run", "notes", "--until", "generate").code == 0
        items = shell("inbox", "--json").data
        return [(item["kind"], item["about"], item["command"]) for item in items if item["about"] != "build"]

    assert waiting() == []
    with next(template.rglob("README.md.jinja")).open("a") as file:
        file.write("\nNews of the template.\n")
    assert waiting() == [("drift", "template", "mcpfactory update notes")]
    assert shell("update", "notes").code == 0
    assert "News of the template." in (shell.folder / "servers/notes/README.md").read_text()
    assert waiting() == []
