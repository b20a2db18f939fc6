"""What a release writes, as text: where a version stands, and where a section of a changelog goes."""

from __future__ import annotations

from datetime import date

import pytest

from mcpfactory_codegen.servers.manifest_diff import Change
from mcpfactory_pipeline.build.wheels import replace_source_version
from mcpfactory_pipeline.delivery.releases.changelog import (
    changelog_section,
    insert_release_section,
    read_changelog_fragments,
    section_of,
    write_changelog_fragment,
)

DAY = date(2030, 5, 4)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('[project]\nname = "x"\nversion = "1.0"\n', '[project]\nname = "x"\nversion = "2.0.0"\n'),
        ("[project]\r\nversion='1.0'  # ours\r\n[tool.x]\r\n", "[project]\r\nversion='2.0.0'  # ours\r\n[tool.x]\r\n"),
        (
            '[tool.a]\nversion = "9"\n[project]\nversion = "1"\n[tool.b]\nversion = "9"\n',
            '[tool.a]\nversion = "9"\n[project]\nversion = "2.0.0"\n[tool.b]\nversion = "9"\n',
        ),
    ],
)
def test_the_version_of_the_project_is_replaced_and_nothing_else(tmp_path, before, after):
    (tmp_path / "pyproject.toml").write_bytes(before.encode())
    assert replace_source_version(tmp_path, "p", "2.0.0") == ("pyproject.toml", after)


def test_a_version_that_the_package_states_is_replaced_there(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\ndynamic = ["version"]\n[tool.x]\nversion = "9"\n')
    (tmp_path / "src" / "p").mkdir(parents=True)
    (tmp_path / "src" / "p" / "__init__.py").write_text('"""P."""\n\n__version__ = "1.0"\n')
    found = replace_source_version(tmp_path, "p", "2.0.0")
    assert found == ("src/p/__init__.py", '"""P."""\n\n__version__ = "2.0.0"\n')


def test_a_section_goes_before_other_releases_and_after_what_is_not_released():
    new = changelog_section("2.0.0", DAY, (), ())
    assert insert_release_section("", new) == "# Changelog\n\n## 2.0.0 - 2030-05-04\n\nNothing changes for callers.\n"
    text = "# Changes\n\nWords.\n\n## [Unreleased]\n\n- soon\n\n## [1.0.0] - 2029-01-01\n\n- old\n"
    done = insert_release_section(text, new)
    assert done.replace(f"{new}\n", "") == text
    assert done.index("- soon") < done.index("## 2.0.0") < done.index("## [1.0.0]")
    assert (section_of(done, "1.0.0"), section_of(done, "2.0.0")) == ("- old", "Nothing changes for callers.")
    assert section_of(done, "2.0") == section_of(done, "3.0.0") == ""


def test_nothing_that_comes_from_a_document_is_markup_in_a_changelog():
    change = Change("breaking", "text-changed", "find", "", "<img src=x> [a](b)\n## 9.9.9 - today")
    text = changelog_section("2.0.0", DAY, (), [change])
    assert r"- breaking: &lt;img src=x> \[a\](b) \#\# 9.9.9 - today" in text


def test_notes_are_read_by_kind_and_two_with_the_same_words_do_not_meet(tmp_path):
    assert write_changelog_fragment(tmp_path, "It is quicker!", "fixed").file == "changes/it-is-quicker.fixed.md"
    assert write_changelog_fragment(tmp_path, "It is quicker!", "fixed").file == "changes/it-is-quicker-2.fixed.md"
    assert write_changelog_fragment(tmp_path, "…", "added").file == "changes/note.added.md"
    (tmp_path / "changes" / "note.added.md").rename(tmp_path / "changes" / "note.added.major.md")
    (tmp_path / "changes" / "README.md").write_text("How to write notes.")
    assert [(note.kind, note.step) for note in read_changelog_fragments(tmp_path)] == [
        ("added", "major"), ("fixed", "patch"), ("fixed", "patch"),
    ]  # fmt: skip
