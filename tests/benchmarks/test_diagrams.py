"""The pictures of docs/architecture.md: where nodes stand, and what the picture says."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as some

from benchmarks.house.layout import lay_out
from benchmarks.house.modules import parse
from benchmarks.house.pictures import way, wheels
from benchmarks.house.source import Source
from benchmarks.house.way import Way

RUNTIME = "factory/runtime/src/mcpfactory_runtime"
TEXT = "{http://www.w3.org/2000/svg}text"


@some.composite
def graphs(draw):
    """Graphs without circles: every edge leads to a later node."""
    names = [f"n{number}" for number in range(draw(some.integers(1, 12)))]
    return {
        name: set(draw(some.lists(some.sampled_from(names[index + 1 :] or names[:0] or [name])))) - {name}
        for index, name in enumerate(names)
    }


@given(graphs())
def test_edges_lead_down_and_boxes_do_not_touch(leads):
    drawn = lay_out(leads, lambda name: 10.0 * len(name), row_height=40, box_height=20)
    assert set(drawn.nodes) == set(leads)
    for start, ends in leads.items():
        for end in ends:
            heights = [y for _, y in drawn.edges[start, end]]
            assert heights == sorted(heights)
            assert (heights[0], heights[-1]) == (drawn.nodes[start][1] + 10, drawn.nodes[end][1] - 10)
    for (one, (x0, y0)), (other, (x1, y1)) in itertools.combinations(drawn.nodes.items(), 2):
        assert y0 != y1 or abs(x0 - x1) > 5 * (len(one) + len(other))
    assert all(
        5 * len(name) <= x + 0.1 and x <= drawn.width - 5 * len(name) + 0.1 for name, (x, _) in drawn.nodes.items()
    )


def test_a_layout_is_the_same_every_time():
    leads = {"a": {"b", "c", "d"}, "b": {"e"}, "c": {"e", "d"}, "d": {"e"}, "e": set()}
    again = {name: set(ends) for name, ends in reversed(leads.items())}
    one, other = (lay_out(each, len, row_height=40, box_height=20) for each in (leads, again))
    assert one.nodes == other.nodes


def test_a_circle_has_no_layout():
    with pytest.raises(ValueError, match="circle"):
        lay_out({"a": {"b"}, "b": {"a"}}, len, row_height=40, box_height=20)


FILES = {
    "pipeline/src/mcpfactory_pipeline/plan.py": "",
    "factory/cli/src/mcpfactory/main.py": "",
    "factory/codegen/src/mcpfactory_codegen/read/file.py": "import mcpfactory_codegen.ir\n",
    "factory/codegen/src/mcpfactory_codegen/ir.py": "",
    f"{RUNTIME}/auth/gate.py": "import mcpfactory_runtime.server.errors\n",
    f"{RUNTIME}/server/core.py": "import mcpfactory_runtime.auth.gate\n",
    f"{RUNTIME}/server/session.py": "import mcpfactory_runtime.server.errors\n",
    f"{RUNTIME}/server/errors.py": "",
}  # fmt: skip
SOURCES = [Source(path, text) for path, text in FILES.items()]


def drawn_words(drawn: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(drawn).iter(TEXT)]


def test_wheels_show_every_folder_once():
    words = drawn_words(
        wheels(parse(SOURCES), {"mcpfactory_runtime": ["server.core", "server.session", "auth", "server.errors"]})
    )
    assert [word for word in words if word in {"plan", "main", "read", "ir", "auth"}] == [
        "plan",
        "main",
        "read",
        "ir",
        "auth",
    ]


def test_a_folder_with_another_in_its_midst_is_drawn_in_parts():
    orders = {"mcpfactory_runtime": ["server.core", "server.session", "auth", "server.errors"]}
    assert {"server: core, session", "server: errors"} <= set(drawn_words(wheels(parse(SOURCES), orders)))


def test_a_way_names_its_files_and_what_they_say():
    traced = Way(("w/a/one.py", "w/two.py"), {("w/a/one.py", "w/two.py"): 2, ("w/two.py", "w/a/one.py"): 1})
    drawn = way({"A way": traced}, {"w/a/one.py": "Bytes & lines"})
    assert drawn_words(drawn) == ["A way: 2 files", "a/one.py", "Bytes & lines", "two.py", ""]
    assert drawn.count('class="edge"') == drawn.count('class="back"') == 1
