"""A plan carried out: one commit, a tag for each server, and nothing at all where something is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import ReleaseError
from tests.releases.conftest import Space


def change(space: Space, name: str = "books", tools: str = "find: text limit\n") -> None:
    (space.root / "servers" / name / "tools.txt").write_text(tools)


def test_one_commit_has_versions_and_changelogs_of_all_that_changed_and_each_server_its_own_tag(space, contract_of):
    before = space.git("rev-parse", "HEAD")
    change(space)
    (space.root / "servers/books/changes/limit.added.md").write_text("A limit:\n\n- of books\n- of pages\n")
    change(space, "notes", "other: text\n")
    space.commit()
    made = {one.server: one for one in space.apply()}
    assert [(one.outcome, one.tag) for one in made.values()] == [
        ("released", "books-v1.1.0"), ("released", "notes-v2.0.0"),
    ]  # fmt: skip
    head = space.git("rev-parse", "HEAD")
    assert space.git("rev-list", "--count", f"{before}..HEAD") == "2", "the change, and the release"
    for tag in ("books-v1.1.0", "notes-v2.0.0"):
        assert space.git("rev-parse", f"{tag}^{{commit}}") == head
        assert space.git("cat-file", "-t", tag) == "tag"
    assert space.git("status", "--porcelain") == ""
    assert 'version = "1.1.0"' in (space.root / "servers/books/pyproject.toml").read_text()
    assert (space.root / "servers/books/CHANGELOG.md").read_text() == (
        "# Changelog\n\n"
        "## 1.1.0 - 2030-05-04\n\n"
        "### Added\n\n- A limit:\n\n  - of books\n  - of pages\n\n"
        "### For callers\n\n- additive: find: limit is new\n\n"
        "## 1.0.0 - 2030-05-04\n\nThe first release.\n"
    )
    assert "- of pages" in space.git("tag", "-n99", "--list", "books-v1.1.0")
    assert not (space.root / "servers/books/changes/limit.added.md").exists()
    kept = contract_of("notes-v2.0.0", "notes")
    assert (kept["version"], [tool["name"] for tool in kept["tools"]]) == ("2.0.0", ["other"])


def test_a_changelog_keeps_its_line_ends_and_one_that_is_not_in_utf_8_is_refused(space):
    log = space.root / "servers/books/CHANGELOG.md"
    change(space)
    log.write_bytes("# Änderungen\n".encode("latin-1"))
    space.commit()
    assert space.refused() == "changelog"
    log.write_bytes(b"# Log\r\n\r\n## 1.0.0\r\n\r\nOld.\r\n")
    space.commit()
    assert [one.tag for one in space.apply()] == ["books-v1.1.0"]
    found = log.read_bytes()
    assert b"\r\n## 1.1.0 - 2030-05-04\r\n" in found
    assert found.count(b"\n") == found.count(b"\r\n")


def test_a_named_server_is_released_alone(space):
    change(space)
    change(space, "notes")
    space.commit()
    assert [one.tag for one in space.apply("notes")] == ["notes-v1.1.0"]
    assert space.plan()["books"].status == "due"


def test_a_rehearsal_says_what_would_be_and_changes_nothing(space):
    change(space)
    space.commit()
    head = space.git("rev-parse", "HEAD")
    (one,) = space.apply(dry_run=True)
    assert (one.tag, one.commit) == ("books-v1.1.0", "")
    assert one.files == (
        "servers/books/CHANGELOG.md", "servers/books/changes/released.json", "servers/books/pyproject.toml",
    )  # fmt: skip
    assert (space.git("rev-parse", "HEAD"), space.git("status", "--porcelain")) == (head, "")
    assert "books-v1.1.0" not in space.tags


def test_a_tree_that_is_not_as_its_commit_has_it_is_refused(space):
    change(space)
    assert space.refused() == "dirty-tree"
    space.commit()
    (space.root / "anywhere.txt").write_text("untracked")
    assert space.refused() == "dirty-tree"


def test_a_tag_that_this_branch_does_not_contain_is_refused(space):
    space.git("checkout", "-qb", "other")
    change(space)
    space.commit()
    space.apply()
    space.git("checkout", "-q", "main")
    change(space)
    space.commit()
    assert space.refused() == "tag-elsewhere"
    assert space.plan()["books"].hint.startswith("git merge books-v1.1.0")


def test_a_release_whose_tag_is_missing_is_continued_even_in_another_clone_and_after_other_work(space, tmp_path):
    change(space)
    change(space, "notes")
    space.commit()
    made = space.apply()
    space.git("tag", "-d", "books-v1.1.0")
    (space.root / "other.txt").write_text("work")
    space.commit()
    space.git(
        "clone", "-q", "-c", "user.name=Eve", "-c", "user.email=e@example.org", str(space.root), str(tmp_path / "clone")
    )
    clone = Space(tmp_path / "clone")
    assert clone.plan()["books"].status == "pending"
    (one,) = clone.apply()
    assert (one.outcome, one.tag, one.commit) == ("continued", "books-v1.1.0", made[0].commit)
    assert clone.git("rev-parse", "books-v1.1.0^{commit}") == made[0].commit
    assert "For callers" in clone.git("tag", "-n99", "--list", "books-v1.1.0")
    assert clone.apply() == []


def test_a_commit_that_a_hook_refuses_leaves_the_tree_as_it_was(space):
    change(space)
    (space.root / "servers/books/changes/a.added.md").write_text("A limit.")
    space.commit()
    hook = space.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho 'not on a Friday' >&2\nexit 1\n")
    hook.chmod(0o755)
    assert space.refused() == "git"
    hook.unlink()
    assert [one.tag for one in space.apply()] == ["books-v1.1.0"]


def test_one_server_that_is_refused_keeps_all_of_them(space):
    change(space)
    (space.root / "servers/notes/changes/what.ever.md").write_text("x")
    space.commit()
    assert space.refused() == "note"
    assert [one.tag for one in space.apply("books")] == ["books-v1.1.0"]


# git runs it before the commit is made: it ends the process that waits for git, and then refuses.
KILLER = "#!/bin/sh\nread -r _ _ _ parent _ < /proc/$PPID/stat\nkill -9 $parent\nexit 1\n"
APPLY = """\
import sys
from pathlib import Path
from mcpfactory_pipeline.delivery.releases.apply import apply_releases
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.releases.conftest import read
apply_releases(Workspace.find(Path(sys.argv[1])), None, read)
"""


def test_what_a_release_wrote_that_was_killed_before_its_commit_is_taken_back_and_what_a_person_wrote_is_not(space):
    change(space)
    (space.root / "servers/books/changes/a.added.md").write_text("A limit.")
    space.commit()
    hook = space.root / ".git/hooks/pre-commit"
    hook.write_text(KILLER)
    hook.chmod(0o755)
    command = [sys.executable, "-c", APPLY, str(space.root)]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == -9
    hook.unlink()
    assert "servers/books/CHANGELOG.md" in space.git("status", "--porcelain")
    log = space.root / "servers/books/CHANGELOG.md"
    log.write_text(log.read_text() + "Mine.\n")
    with pytest.raises(ReleaseError) as caught:
        space.apply()
    assert caught.value.code == "dirty-tree"
    assert space.git("status", "--porcelain") == "M servers/books/CHANGELOG.md"
    assert log.read_text().endswith("Mine.\n")
    space.git("checkout", "--", "servers/books/CHANGELOG.md")
    assert [one.tag for one in space.apply()] == ["books-v1.1.0"]
    assert log.read_text().count("## 1.1.0 - 2030-05-04") == 1
