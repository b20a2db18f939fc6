"""The examination of migrated examples: what it takes for one, what it sees, and the page that it draws."""

from __future__ import annotations

import sys

import pytest

from benchmarks.exam.migration import PAGE, examine_example, examples, migration
from benchmarks.exam.migration_page import TABLES, MigratedFile, drawn, summary

SDK = '''\
from mcp.server.mcpserver import MCPServer

mcp = MCPServer("shop")


@mcp.tool()
def price(title: str, copies: int = 1) -> float:
    """What copies of a book cost."""
    return len(title) * copies / 2


@mcp.resource("shop://shelves/{name}")
def shelf(name: str) -> str:
    """A shelf."""
    return f"the shelf {name}"
'''
FASTMCP = '''\
from fastmcp import FastMCP

mcp = FastMCP("shop", auth=None)


@mcp.tool
def price(title: str) -> float:
    """What a book costs."""
    return len(title) / 2
'''
FILES = {
    "examples/sdk/shop.py": SDK,
    "examples/fast/shop.py": FASTMCP,
    "examples/fast/client.py": "from fastmcp import Client\n",
    "examples/other.py": "class FastMCP: ...\nmcp = FastMCP()\n",
    "examples/keyed.py": SDK.replace("mcp = ", "import os\n\nKEY = os.environ['SHOP_KEY']\nmcp = "),
    "examples/told.py": SDK.replace("len(title) * copies / 2", "float(len(type(mcp).__name__))"),
    "src/shop.py": SDK,
}


@pytest.fixture
def checkout(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shops"\nversion = "1.2"\n')
    return tmp_path


def test_files_that_make_a_server_are_examples_and_no_others(checkout):
    found = [path.relative_to(checkout).as_posix() for path in examples(checkout)]
    assert found == ["examples/fast/shop.py", "examples/keyed.py", "examples/sdk/shop.py", "examples/told.py"]
    assert [path.name for path in examples(checkout, "keyed")] == ["keyed.py"]


def test_an_example_is_equal_left_silent_or_different(checkout):
    found = {one.path: one for one in (examine_example(checkout, path, sys.executable) for path in examples(checkout))}
    equal = found["examples/sdk/shop.py"]
    assert (equal.equal, equal.calls > 5) == (True, True)
    assert found["examples/fast/shop.py"].left == ("FastMCP(auth=…)",)
    keyed = found["examples/keyed.py"]
    assert (keyed.silent, keyed.compared, keyed.differs) == ("KeyError: 'SHOP_KEY'", False, ())
    told = found["examples/told.py"]
    assert not told.equal
    assert any("9.0" in text and "6.0" in text for text in told.differs)


def test_where_there_is_nothing_to_examine_it_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.exam.migration.environment", lambda *_: sys.executable)
    assert migration([str(tmp_path)]).verdict == "not run"
    assert "hint: --folder names a checkout" in capsys.readouterr().out


def test_the_page_has_a_row_for_each_package_and_the_reasons():
    rows = [
        MigratedFile("a.py", calls=4),
        MigratedFile("b.py", noted=1, calls=3, differs=("f({}): 1 there | 2 here",)),
        MigratedFile("c.py", silent="KeyError: 'X'"),
        MigratedFile("d.py", ("mcp.add_transform", "FastMCP(auth=…)")),
        MigratedFile("e.py", ("server.add_transform", "server.add_transform")),
    ]
    assert summary(rows) == "5 files, 3 fully migrated, 2 compared, 1 equal"
    page = "# x\n\n<!-- drawn by: python -m benchmarks.exam migration --page -->\nold\n<!-- end -->\n"
    text = drawn(page, {"shops 1.2": rows}, "2026-01-02")
    assert "old" not in text
    assert "| shops 1.2 | 5 | 3 | 1 | 2 | 2 | 1 | 1 | 1 | 7 |" in text
    assert "| `b.py` | f({}): 1 there \\| 2 here |" in text.replace("\\(", "(").replace("\\{", "{").replace("\\}", "}")
    assert "| `….add_transform` | 2 |" in text
    assert drawn(text, {"shops 1.2": rows}, "2026-01-02") == text


def test_the_page_is_drawn_and_what_differs_or_did_not_start_is_named():
    (tables,) = TABLES.findall(PAGE.read_text(encoding="utf-8"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables.splitlines() if line[:2] == "| "]
    counts = [row for row in rows if len(row) == 10 and row[1].isdigit()]
    assert len(counts) >= 2, "run: python -m benchmarks.exam migration --page"
    for _name, files, fully, _noted, left, compared, equal, differ, silent, _calls in counts:
        assert int(files) == int(fully) + int(left)
        assert int(fully) == int(compared) + int(silent)
        assert int(equal) + int(differ) == int(compared)
    named = tables.partition("What differs, and what could not be started")[2].partition("What is left by hand")[0]
    assert named.count("| `") == sum(int(row[7]) + int(row[8]) for row in counts)
