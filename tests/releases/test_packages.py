"""Packages that are released together: one version, one changelog, one tag, beside the servers of the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import ConfigError, ReleaseError
from mcpfactory_pipeline.delivery.releases.package_group import check_release_tag
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.releases.conftest import Space

CHANGELOG = "# Changelog\n\nNewest first.\n\n## Unreleased\n\n### Added\n\n- One thing.\n- Another.\n"


def package(space: Space, name: str, version: str = "0.1.0", needs: str = "") -> None:
    folder = space.root / "packages" / name
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "acme-{name}"\nversion = "{version}"\ndependencies = ["filelock>=3", {needs}]\n'
    )


@pytest.fixture
def both(space: Space) -> Space:
    """Beside the two servers, two packages of which one needs the other; never released."""
    package(space, "core")
    package(space, "tool", needs='"acme-core[fast]==0.1.0", "acme-core-more==0.1.0"')
    config = space.root / "mcpfactory.toml"
    config.write_text(config.read_text() + '[release]\nname = "acme"\npackages = ["packages/core", "packages/tool"]\n')
    (space.root / "CHANGELOG.md").write_text(CHANGELOG)
    space.commit()
    return space


def test_the_first_release_has_the_version_that_the_packages_state_and_a_dated_section(both):
    assert both.plan()["acme"].reasons == ("never released", "2 changes in CHANGELOG.md")
    [made] = both.apply("acme")
    assert (made.outcome, made.tag, made.files) == ("released", "acme-v0.1.0", ("CHANGELOG.md",))
    assert (both.root / "CHANGELOG.md").read_text() == CHANGELOG.replace("Unreleased", "0.1.0 - 2030-05-04")
    assert both.git("log", "-1", "--format=%s") == "Release acme 0.1.0"
    assert "- Another." in both.git("tag", "-n99", "--list", "acme-v0.1.0")
    assert both.git("status", "--porcelain") == ""
    assert both.apply() == []
    assert [one.outcome for one in both.apply("acme")] == ["current"]


def test_the_next_one_raises_the_version_everywhere_by_what_the_headings_ask_for(both):
    both.apply("acme")
    log = both.root / "CHANGELOG.md"
    log.write_text(log.read_text().replace("## 0.1.0", "## Unreleased\n\n### Removed\n\n- A thing.\n\n## 0.1.0"))
    (both.root / "servers/books/tools.txt").write_text("find: text limit\n")
    both.commit()
    made = {one.server: one for one in both.apply()}
    assert {name: one.version for name, one in made.items()} == {"acme": "0.2.0", "books": "1.1.0"}
    assert both.git("log", "-1", "--format=%s") == "Release acme 0.2.0, books 1.1.0"
    assert 'version = "0.2.0"' in (both.root / "packages/core/pyproject.toml").read_text()
    tool = (both.root / "packages/tool/pyproject.toml").read_text()
    assert 'version = "0.2.0"' in tool
    assert '["filelock>=3", "acme-core[fast]==0.2.0", "acme-core-more==0.1.0"]' in tool
    assert log.read_text().count("## ") - log.read_text().count("### ") == 2
    assert "Unreleased" not in log.read_text()


def test_a_tag_is_checked_against_what_all_packages_state(both):
    both.apply("acme")
    found = check_release_tag(Workspace.find(both.root), "acme-v0.1.0", branch="HEAD")
    assert (found.server, found.version, found.candidate) == ("acme", "0.1.0", "")
    both.git("tag", "acme-v0.3.0")
    with pytest.raises(ReleaseError, match=r"does not match the version of its sources, 0\.1\.0"):
        check_release_tag(Workspace.find(both.root), "acme-v0.3.0")


def test_what_is_wrong_is_said_and_nothing_is_released(both):
    core = both.root / "packages/core/pyproject.toml"
    core.write_text(core.read_text().replace('version = "0.1.0"', 'version = "0.1.1"'))
    both.commit()
    assert both.refused("acme") == "version"
    assert "packages/core 0.1.1, packages/tool 0.1.0" in both.plan()["acme"].message
    core.write_text(core.read_text().replace('version = "0.1.1"', 'version = "0.1.0"'))
    (both.root / "CHANGELOG.md").write_bytes("# Änderungen\n".encode("latin-1"))
    both.commit()
    assert both.refused("acme") == "changelog"
    (both.root / "CHANGELOG.md").write_text(CHANGELOG)
    both.commit()
    both.git("switch", "-q", "-c", "elsewhere")
    both.apply("acme")
    both.git("switch", "-q", "-")
    assert both.refused("acme") == "tag-elsewhere"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("release = 1", "release: must be a table"),
        ("[release]\npackage = []", "unknown field 'package'"),
        ("[release]\npackages = []", "packages: .. is not valid"),
        ('[release]\npackages = ["packages/gone"]', "packages/gone is not a folder with a pyproject.toml"),
        ('[release]\npackages = ["../packages"]', "is not a folder with"),
        ('[release]\nname = "a b"\npackages = ["packages/core"]', 'release.name: "a b" is not valid'),
        ('[release]\nname = "books"\npackages = ["packages/core"]', "also the name of a server"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(space, table, said):
    package(space, "core")
    config = space.root / "mcpfactory.toml"
    config.write_text(
        f"{table}\n{config.read_text()}" if table.startswith("release") else f"{config.read_text()}\n{table}\n"
    )
    with pytest.raises(ConfigError, match=said):
        space.plan()


def test_this_repository_names_its_own_packages():
    from mcpfactory_pipeline.delivery.releases.package_group import read_package_group

    root = Path(__file__).resolve().parents[2]
    packages = read_package_group(Workspace.find(root))
    assert packages is not None
    assert len(packages.folders) == 4
    assert packages.version
