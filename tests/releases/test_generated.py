"""Releases of a server that was generated: what its commit holds is what `generate` makes of it, version and all."""

from __future__ import annotations

import json
from pathlib import Path

from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_codegen.servers.update import update_server
from mcpfactory_pipeline.state.store import Store
from tests.codegen.execution.documents import written
from tests.releases.conftest import Space


def test_the_manifest_says_the_new_version_and_files_that_are_out_of_date_are_not_released(tmp_path: Path):
    space = Space(tmp_path / "space")
    folder = create_server(space.root / "servers", source=written(tmp_path), name="shop").path
    (folder / "tools.txt").write_text("find: text\n")
    space.commit()
    assert [one.tag for one in space.apply()] == ["shop-v0.1.0"]
    document = next((folder / "api").iterdir())
    text = document.read_text()
    assert text.count("List books") == 1
    document.write_text(text.replace("List books", "All the books"))
    space.commit()
    assert space.refused() == "stale"
    regenerate(folder)
    space.commit()
    (one,) = space.apply()
    assert (one.tag, space.git("status", "--porcelain")) == ("shop-v0.1.1", "")
    manifest = json.loads((folder / "src/shop_mcp/_generated/manifest.json").read_text())
    assert manifest["server"]["version"] == "0.1.1"
    assert {step.action for step in regenerate(folder).steps} == {"same"}


def test_an_update_is_released_without_another_run_of_generate(tmp_path: Path):
    space = Space(tmp_path / "space")
    original = written(tmp_path)
    folder = create_server(space.root / "servers", source=original, name="shop").path
    (folder / "tools.txt").write_text("find: text\n")
    facts = {"run": "r", "outcome": "passed", "seconds": 1.0, "fingerprint": "x"}
    with Store(space.workspace).transaction("shop") as transaction:
        transaction.append("stage.finished", stage="generate", inputs={"document": "sha256:earlier"}, **facts)
    text = original.read_text()
    original.write_text(text.replace("List books", "All the books"))
    update_server(folder, source=original)
    space.commit()
    assert space.plan()["shop"].code == ""
    document = next((folder / "api").iterdir())
    document.write_text(text)
    space.commit()
    assert space.plan()["shop"].code == "stale"
