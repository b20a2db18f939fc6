"""The figures of the source tree: the graph on its own, modules from texts, and the command on this repository."""

from __future__ import annotations

import json

import pytest

from benchmarks.house import graph, table
from benchmarks.house.__main__ import main
from benchmarks.house.figures import figures
from benchmarks.house.measure import Measured, commit_tree
from benchmarks.house.modules import parse
from benchmarks.house.source import Source
from tests.rows import rows

RUNTIME = "factory/runtime/src/mcpfactory_runtime"
PIPELINE = "pipeline/src/mcpfactory_pipeline"
FILES = {
    f"{RUNTIME}/__init__.py": "",
    f"{RUNTIME}/errors.py": "import sys\nclass Fault: ...\n",
    f"{RUNTIME}/server/__init__.py": "from mcpfactory_runtime.server.core import Core as Core\n",
    f"{RUNTIME}/server/core.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import session\nclass Core: ...\n",
    f"{RUNTIME}/server/session.py": "def feed():\n    from ..errors import Fault\n    from .core import Core\n",
    f"{PIPELINE}/__init__.py": "",
    f"{PIPELINE}/run.py": "import mcpfactory_runtime.errors\n\n\n\nclass Outer:\n    class Core: ...\n",
}
SOURCES = [Source(path, text) for path, text in FILES.items()]


@rows(
    "leads, found",
    [
        ({}, []),
        ({1: [2], 2: [3], 3: []}, []),
        ({1: [1], 2: [1]}, []),
        ({1: [2], 2: [1], 3: [1]}, [{1, 2}]),
        ({1: [2], 2: [3], 3: [1], 4: [5, 1], 5: [4]}, [{1, 2, 3}, {4, 5}]),
        ({1: [2, 4], 2: [3], 3: [2], 4: [1, 3]}, [{1, 4}, {2, 3}]),
        ({number: [(number + 1) % 5000] for number in range(5000)}, [set(range(5000))]),
    ],
)
def test_circles_are_the_nodes_that_reach_each_other(leads, found):
    assert sorted(map(sorted, graph.circles(leads))) == sorted(map(sorted, found))


def test_layers_put_every_node_above_all_that_it_leads_to():
    assert graph.layers({"a": ["b", "c"], "b": ["c"], "c": [], "d": []}) == [["c", "d"], ["b"], ["a"]]
    with pytest.raises(ValueError, match="circle"):
        graph.layers({"a": ["b"], "b": ["a"]})


def test_an_edge_beside_a_longer_way_is_left_out():
    leads = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}
    assert graph.without_shortcuts(leads) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set()}


def test_modules_know_what_they_import_in_every_form():
    by_name = {module.name: module for module in parse(SOURCES)}
    assert {name: set(module.imports) for name, module in by_name.items() if module.imports} == {
        "mcpfactory_runtime.server": {"mcpfactory_runtime.server.core"},
        "mcpfactory_runtime.server.core": {"mcpfactory_runtime.server.session"},
        "mcpfactory_runtime.server.session": {"mcpfactory_runtime.errors", "mcpfactory_runtime.server.core"},
        "mcpfactory_pipeline.run": {"mcpfactory_runtime.errors"},
    }
    assert (by_name["mcpfactory_runtime.server.core"].folder, by_name["mcpfactory_pipeline.run"].folder) == (
        "server",
        "",
    )


def test_figures_of_a_small_tree():
    found = figures(parse(SOURCES))
    assert (found.modules, found.median) == (7, 2)
    assert found.lines == {
        "mcpfactory_runtime": 10, "mcpfactory_codegen": 0, "mcpfactory_pipeline": 6, "mcpfactory": 0,
    }  # fmt: skip
    assert found.statements == 16
    assert found.circles == (("mcpfactory_runtime.server.core", "mcpfactory_runtime.server.session"),)
    assert found.one_importer == ("mcpfactory_runtime.server.session",)
    assert found.classes == {"Core": (f"{RUNTIME}/server/core.py:4", f"{PIPELINE}/run.py:6")}


def test_a_figure_that_one_tree_lacks_is_a_dash():
    trees = [
        Measured("before", figures(parse(SOURCES)), {}, {"one call": 9}),
        Measured("here", figures(parse(SOURCES)), {"command": 4}, {"one call": 7}),
    ]
    assert table.rows(trees)[-2:] == [
        ("files of the recipe “command”", "–", "4"),
        ("files on the way of one call", "9", "7"),
    ]
    assert table.as_text(trees).splitlines()[-1].split("  ")[-1].strip() == "7"


def test_the_command_measures_this_tree(capsys):
    main(["--json"])
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["here"]
    assert found["here"]["figures"]["modules"] > 100
    assert len(found["here"]["recipes"]) == 8
    assert 0 < found["here"]["ways"]["one operation"] <= 31


def test_a_commit_is_read_as_it_was():
    with commit_tree("HEAD") as root:
        assert (root / "pyproject.toml").is_file()
    assert not root.exists()


def test_an_unknown_commit_ends_with_a_hint():
    with pytest.raises(SystemExit, match="hint: git log --oneline"), commit_tree("no-such-commit"):
        pass
