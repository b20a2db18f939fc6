"""Whether what is installed in a folder satisfies requirements, and what those require in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpfactory_pipeline.launch.requirements import unmet_requirement


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    installed(tmp_path, "shelf", "2.1", "paper>=1", 'ink; extra == "colour"')
    installed(tmp_path, "paper", "1.4")
    return tmp_path


def installed(folder: Path, name: str, version: str, *requires: str) -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in requires)]
    (info / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("needed", "unmet"),
    [
        ("shelf", ""),
        ("Shelf>=2,<3", ""),
        ("shelf>=3", "shelf>=3, and has 2.1"),
        ("pen", "pen"),
        ("shelf[colour]", 'ink; extra == "colour"'),
        ('pen; python_version < "3"', ""),
        ("a b", None),
    ],
)
def test_the_first_requirement_that_is_not_satisfied_is_named(libraries: Path, needed: str, unmet: str | None) -> None:
    found = unmet_requirement([needed], [str(libraries)])
    assert found.startswith("a b (") if unmet is None else found == unmet


def test_requirements_of_requirements_count(libraries: Path) -> None:
    installed(libraries, "desk", "1.0", "paper>=2")
    assert unmet_requirement(["desk"], [str(libraries)]) == "paper>=2, and has 1.4"


def test_markers_are_those_of_the_interpreter_that_the_folder_belongs_to(libraries: Path) -> None:
    needed = ['pen; python_version < "3.9"']
    assert unmet_requirement(needed, [str(libraries)], "3.8") == 'pen; python_version < "3.9"'
    assert unmet_requirement(needed, [str(libraries)], "3.12") == ""
