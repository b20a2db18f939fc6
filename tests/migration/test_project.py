"""A whole project becomes one of the runtime: which files change, and what it depends on."""

from __future__ import annotations

import tomllib

import pytest

from mcpfactory_pipeline.migration.project import PROJECT, migrate_project

SERVER = "from mcp.server.mcpserver import MCPServer\n\nmcp = MCPServer('notes')\n"
HEAD = '[project]\nname = "notes"\nversion = "1"\n'


def migrated(needs: str, **files: str):
    return migrate_project({PROJECT: f"{HEAD}{needs}\n", "src/notes.py": SERVER, **files}, "0.4.2")


@pytest.mark.parametrize(
    ("needs", "wanted"),
    [
        ('dependencies = ["mcp>=2,<3"]', ["mcpfactory-runtime>=0.4,<0.5"]),
        ("dependencies = ['FastMCP[apps]>=2 ; python_version > \"3.10\"', 'mcp']", ["mcpfactory-runtime>=0.4,<0.5"]),
        (
            'dependencies = [\n    # what it is\n    "mcp[cli]==2.*",  # the SDK\n    "fastmcp",\n    "httpx>=0.2",\n]',
            ["mcpfactory-runtime>=0.4,<0.5", "httpx>=0.2"],
        ),
        ('dependencies = ["mcpfactory-runtime>=0.3"]', ["mcpfactory-runtime>=0.3"]),
    ],
)
def test_the_runtime_takes_the_place_of_what_it_was_written_with(needs, wanted):
    found = migrated(needs)
    assert found.complete
    before, after = found.requirements
    assert tomllib.loads(after)["project"]["dependencies"] == wanted
    assert ("# what it is" in after, "\n" * 2 in after) == ("# what it is" in before, False)


@pytest.mark.parametrize(
    "needs",
    ["", "dependencies = []", 'dependencies = ["m\\u0063p"]', 'dependencies = ["httpx"]\n[x]\ny = ["mcp"]'],
)
def test_dependencies_that_no_program_can_change_are_left_to_a_person(needs):
    found = migrated(needs)
    assert (found.complete, found.requirements[0]) == (False, found.requirements[1])
    assert "write mcpfactory-runtime>=0.4,<0.5 there" in found.left[0].says


def test_tests_and_examples_stay_and_are_named_and_what_has_no_equal_is_left():
    others = {"tests/test_a.py": SERVER, "examples/b.py": SERVER, "conftest.py": SERVER, "tests/broken.py": "def"}
    found = migrated('dependencies = ["mcp"]', **others, **{"src/plain.py": "import os\n"})
    assert found.complete
    assert list(found.files) == ["src/notes.py"]
    assert sorted(found.changed()) == [PROJECT, "src/notes.py"]
    assert [note.split()[0] for note in found.notes] == ["conftest.py", "examples/b.py", "tests/test_a.py"]
    half = migrated('dependencies = ["mcp"]', **{"src/b.py": SERVER.replace("'notes'", "'notes', extensions=[]")})
    assert (half.complete, half.files["src/b.py"].left != ()) == (False, True)
    with pytest.raises(SyntaxError):
        migrated('dependencies = ["mcp"]', **{"src/b.py": "def"})
