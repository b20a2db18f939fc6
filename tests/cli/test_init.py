from __future__ import annotations


def test_init_makes_a_workspace_in_a_repository(empty):
    done = empty("init", "ws", "--json")
    assert done.code == 0
    assert done.data["workspace"] == "ws"
    made = {path.name for path in (empty.folder / "ws").iterdir()}
    assert {"mcpfactory.toml", "pyproject.toml", "servers", "pipeline", ".git", ".gitattributes"} <= made


def test_init_again_changes_nothing(empty):
    empty("init", "ws")
    file = empty.folder / "ws" / "mcpfactory.toml"
    file.write_text(file.read_text() + "# mine\n")
    assert empty("init", "ws").code == 0
    assert file.read_text().endswith("# mine\n")


def test_init_refuses_a_folder_that_holds_other_things(empty):
    (empty.folder / "notes.txt").write_text("mine")
    done = empty("init", ".")
    assert done.code == 3
    assert "notes.txt" in done.err
    assert not (empty.folder / "mcpfactory.toml").exists()
