"""Which servers are due, and which version each gets: from what changed, the contract, notes and the sources."""

from __future__ import annotations

import json

import pytest

from mcpfactory_pipeline.state.store import Store
from tests.pipeline.staged_workspace import configured
from tests.releases.conftest import Space


def test_a_server_that_was_never_released_starts_with_the_version_of_its_sources(tmp_path):
    made = Space(tmp_path / "space")
    made.server("books", version="0.3")
    made.commit()
    one = made.plan()["books"]
    assert (one.status, one.before, one.version, one.tag.name) == ("due", "", "0.3.0", "books-v0.3.0")


def test_only_what_changed_in_the_package_is_due(space):
    assert {one.status for one in space.plan().values()} == {"current"}
    folder = space.root / "servers" / "books"
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text("")
    (folder / "waivers.toml").write_text("")
    (folder / "CHANGELOG.md").write_text((folder / "CHANGELOG.md").read_text() + "A word mended.\n")
    space.commit()
    assert space.plan()["books"].status == "current"
    (folder / "inner.py").write_text("")
    assert space.plan()["books"].status == "due", "what is not committed counts in a plan"
    space.commit()
    found = space.plan()
    assert (found["books"].status, found["notes"].status) == ("due", "current")
    assert found["books"].reasons == ("changed since books-v1.0.0: inner.py",)


@pytest.mark.parametrize(
    ("tools", "version", "step"),
    [
        ("find: text\n", "1.0.1", "patch"),
        ("find: text limit\n", "1.1.0", "minor"),
        ("find: text\nmore:\n", "1.1.0", "minor"),
        ("find:\n", "2.0.0", "major"),
        ("other: text\n", "2.0.0", "major"),
    ],
)
def test_the_version_follows_from_the_contract(space, tools, version, step):
    folder = space.root / "servers" / "books"
    (folder / "tools.txt").write_text(tools)
    (folder / "inner.py").write_text("")
    one = space.plan("books")["books"]
    assert (one.before, one.version, one.step) == ("1.0.0", version, step)


def test_below_1_0_a_minor_step_may_break_and_a_patch_may_add(tmp_path):
    made = Space(tmp_path / "space")
    folder = made.server("books", version="0.4.2")
    made.commit()
    made.apply()
    for tools, version, step in (("find: text limit\n", "0.4.3", "minor"), ("find:\n", "0.5.0", "major")):
        (folder / "tools.txt").write_text(tools)
        one = made.plan()["books"]
        assert (one.before, one.version, one.step) == ("0.4.2", version, step)


@pytest.mark.parametrize(
    ("note", "tools", "version"),
    [
        ("a.fixed.md", "find: text\n", "1.0.1"),
        ("a.added.md", "find: text\n", "1.1.0"),
        ("a.fixed.major.md", "find: text\n", "2.0.0"),
        ("a.removed.md", "find: text limit\n", "2.0.0"),
        ("a.fixed.md", "find: text limit\n", "1.1.0"),  # it states no step: what the contract says is larger
        ("a.added.patch.md", "find: text\n", "1.0.1"),
    ],
)
def test_a_note_raises_the_version(space, note, tools, version):
    folder = space.root / "servers" / "books"
    (folder / "tools.txt").write_text(tools)
    (folder / "changes" / note).write_text("What changed.")
    assert space.plan()["books"].version == version


@pytest.mark.parametrize(("tools", "stated"), [("find:\n", "minor"), ("find: text limit\n", "patch")])
def test_a_note_that_states_less_than_the_contract_is_refused(space, tools, stated):
    folder = space.root / "servers" / "books"
    (folder / "tools.txt").write_text(tools)
    (folder / "changes" / f"a.changed.{stated}.md").write_text("It is nothing.")
    one = space.plan()["books"]
    assert (one.status, one.code, one.before) == ("refused", "lowered", "1.0.0")
    assert f"a.changed.{stated}.md states {stated}" in one.message
    assert one.hint
    space.commit()
    assert space.refused() == "lowered"
    (folder / "changes" / "b.removed.md").write_text("And this.")
    assert space.plan()["books"].status == "due", "together they say enough"


@pytest.mark.parametrize("name", ["words.md", "words.invented.md", "words.fixed.huge.md", "empty.fixed.md"])
def test_a_note_that_cannot_be_used_is_refused_and_other_servers_are_not(space, name):
    (space.root / "servers/books/changes" / name).write_text("" if name.startswith("empty") else "words")
    found = space.plan()
    assert (found["books"].code, found["notes"].status) == ("note", "current")
    assert name in found["books"].message


def test_what_people_promoted_is_what_a_server_without_a_tag_is_compared_with(tmp_path):
    made = Space(tmp_path / "space")
    folder = made.server("books")
    made.commit()
    workspace = configured(made.workspace)
    kept = workspace.artifacts / "books" / "c1" / "validate" / "tools.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"tools": [{"name": "find", "inputSchema": {"type": "object"}}]}))
    with Store(workspace).transaction("books") as transaction:
        built = {"version": "1.4.0", "files": {}, "facts": {}}
        facts = {"run": "r", "outcome": "passed", "seconds": 1.0, "fingerprint": "x", "candidate": "c1"}
        transaction.append("stage.finished", stage="build", inputs={"source": "sha256:other"}, built=built, **facts)
        transaction.append("stage.finished", stage="staging", inputs={}, channel="staging", version="1.4.0", **facts)
    first = made.plan()["books"]
    assert (first.before, first.step) == ("", "patch"), "what a run staged was released to nobody"
    assert [change.message for change in first.changes] == ["find: text is new"], "but its users see what changed"
    with Store(workspace).transaction("books") as transaction:
        transaction.append("promoted", channel="production", candidate="c1", version="1.4.0")
    one = made.plan()["books"]
    assert (one.before, one.version, one.step) == ("1.4.0", "1.5.0", "minor")
    assert one.reasons == ("changed since production got 1.4.0",)
    assert folder.is_dir()
    with Store(workspace).transaction("books") as transaction:
        transaction.append("stage.finished", stage="staging", inputs={}, channel="staging", version="1.5.0", **facts)
    assert made.plan()["books"].version == "1.5.1", "a channel offered 1.5.0 with other bytes"


def test_a_workspace_without_git_without_a_commit_or_with_half_a_history_is_refused(space, tmp_path):
    from mcpfactory_pipeline.base.errors import ReleaseError
    from mcpfactory_pipeline.delivery.releases.git import Repository

    codes = {}
    for name, words in {
        "no-git": (),
        "no-commit": ("init", "-q", "."),
        "shallow": ("clone", "-q", "--depth=1", f"file://{space.root}", "."),
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        if words:
            space.git("-C", str(folder), *words)
        with pytest.raises(ReleaseError) as caught:
            Repository.around(folder)
        codes[name] = caught.value.code
    assert codes == {name: name for name in codes}


def test_a_workspace_below_the_top_of_its_repository_is_released_all_the_same(tmp_path):
    top = Space(tmp_path / "top")
    inner = Space.__new__(Space)
    inner.root = tmp_path / "top" / "inner"
    from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup

    inner.workspace = apply_setup(plan_workspace_setup(inner.root))
    folder = inner.server("books")
    top.commit()
    assert [one.tag for one in inner.apply()] == ["books-v1.0.0"]
    assert inner.plan()["books"].status == "current"
    (folder / "tools.txt").write_text("find:\n")
    inner.commit()
    assert inner.plan()["books"].version == "2.0.0"
