"""The picture of the pipeline: where candidates are, what is drawn of it, and that it stands for itself."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mcpfactory_pipeline.stages import STAGES
from mcpfactory_pipeline.views.graph import (
    GraphNode,
    GraphPlace,
    PlaceChip,
    server_graph,
    server_positions,
    stage_graph,
    workspace_graph,
)
from mcpfactory_pipeline.views.graph_svg import DARK, LIGHT, draw_graph_svg, graph_svg_file
from mcpfactory_pipeline.views.inbox import InboxItem
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from tests.subtest_table import parametrize_subtests

SVG = "{http://www.w3.org/2000/svg}"
CHANNELS = (
    ChannelPolicy(name="staging", gates={"min_score": 80}),
    ChannelPolicy(name="production", source="staging", gates={"max_critical": 0}, soak="60s", approvals=1),
)
STAGED = [replace(stage, channel=CHANNELS[0]) if stage.name == "staging" else stage for stage in STAGES]
DONE: dict[str, Any] = {"verdict": "up-to-date", "outcome": "passed", "message": "", "reasons": []}
NEW, OLD = {"candidate": "new", "version": "2.0"}, {"candidate": "old", "version": "1.0"}


def row(channels: dict[str, Any] | None = None, *, at_work: Sequence[str] = (), **stages: Any) -> dict[str, Any]:
    """A server whose stages are done, but for those that are named; staging offers its newest candidate."""
    return {
        "server": "atlas", "candidate": "new", "version": "2.0", "at_work": at_work, "holds": {},
        "stages": {stage.name: DONE for stage in STAGED} | stages,
        "channels": {"staging": NEW, "production": OLD} if channels is None else channels,
    }  # fmt: skip


def cell(verdict: str, outcome: str | None = None, **facts: Any) -> dict[str, Any]:
    return {"verdict": verdict, "outcome": outcome, "message": "", "reasons": [], **facts}


def item(kind: str, about: str = "production") -> InboxItem:
    return InboxItem(kind, "atlas", about, f"2.0 for {about}: because", "mcpfactory …")


def where(known: dict[str, Any], *items: InboxItem) -> list[tuple[str, str, str, str]]:
    return [(one.place, one.version, one.status, one.path) for one in server_positions(known, items, STAGED, CHANNELS)]


ATLAS = "/servers/atlas/"
DECIDE = f"{ATLAS}decide/production/"
OFFERS = [("staging", "2.0", "offered", DECIDE), ("production", "1.0", "offered", f"{ATLAS}#candidate-old")]


@pytest.mark.parametrize(
    ("kind", "place", "status"),
    [
        ("approval", "approval for production", "approval"),
        ("ready", "approval for production", "ready"),
        ("gate", "gates of production", "gate"),
        ("problem", "gates of production", "waiting"),
    ],
)
def test_a_candidate_that_waits_for_a_channel_stands_before_it_and_leads_to_the_decision(
    kind: str, place: str, status: str
) -> None:
    assert where(row(), item(kind)) == [(place, "2.0", status, DECIDE), *OFFERS]


def test_one_that_only_needs_time_stands_at_the_gates() -> None:
    assert where(row())[0] == ("gates of production", "2.0", "waiting", DECIDE)


def test_what_every_channel_offers_leads_to_the_candidate() -> None:
    anchor = f"{ATLAS}#candidate-new"
    assert where(row({"staging": NEW, "production": NEW})) == [
        ("staging", "2.0", "offered", anchor),
        ("production", "2.0", "offered", anchor),
    ]
    assert where(row({})) == []


@parametrize_subtests(
    "stages, place, version, status",
    [
        ({"generate": cell("run")}, "generate", "", "never"),
        ({"build": cell("blocked", "failed")}, "build", "", "failed"),
        ({"test": cell("run", "passed")}, "test", "2.0", "stale"),
        ({"test": cell("run", "errored"), "validate": cell("run")}, "test", "2.0", "errored"),
        ({"staging": cell("blocked")}, "gates of staging", "2.0", "gate"),
        ({"staging": cell("held", "passed")}, "staging", "2.0", "held"),
    ],
)
def test_what_is_not_done_stands_at_the_first_stage_that_is_due(
    stages: dict[str, Any], place: str, version: str, status: str
) -> None:
    path = ATLAS + ("#candidate-new" if version else "")
    assert where(row({}, **stages)) == [(place, version, status, path)]


def test_what_runs_now_stands_where_it_runs_and_is_marked() -> None:
    known = row({}, at_work=["validate"], test=cell("run"), validate=cell("run"))
    assert where(known) == [("validate", "2.0", "running", f"{ATLAS}#candidate-new")]
    places = {place.node.name: place for place in server_graph(known, (), STAGED, CHANNELS)}
    assert (places["validate"].node.status, places["test"].node.status) == ("running", "run")
    root = ET.fromstring(draw_of(list(places.values())))
    busy = [group for group in root.iter("g") if "busy" in group.get("class", "").split()]
    assert ["validate" in "".join(group.itertext()) for group in busy if "stage" in group.get("class", "")] == [True]


def test_holds_and_checks_that_failed_since_are_seen_on_what_is_offered() -> None:
    held = {**row(), "holds": {"production": {"actor": "Ada", "reason": "audit"}}}
    assert where(held)[-1][2] == "held"
    assert where(row(), item("failed"))[-1][2] == "failed"


def test_who_is_retired_or_cannot_be_read_stands_nowhere() -> None:
    assert where({**row(), "retired": {"actor": "Ada"}}) == []
    assert where({**row(), "problem": {"message": "no"}}) == []


def draw_of(places: list[GraphPlace], **options: Any) -> str:
    return draw_graph_svg(places, title="A <title>", link=lambda path: f"..{path}", **options)


def crowd(number: int) -> list[Any]:
    """Servers that wait for an approval, of which the first ones failed."""
    found = []
    for count in range(number):
        known = {**row({"staging": NEW}), "server": f"s{count:04}"}
        if count < 3:
            known = {**row({}, test=cell("blocked", "failed")), "server": f"s{count:04}"}
        found += server_positions(known, [item("approval")] if count >= 3 else [], STAGED, CHANNELS)
    return found


def test_few_servers_are_chips_and_a_place_with_too_many_counts_the_rest() -> None:
    places = {place.node.name: place for place in workspace_graph(stage_graph(STAGED, None, CHANNELS), crowd(20), 20)}
    assert [chip.label for chip in places["test"].chips] == ["s0000 2.0", "s0001 2.0", "s0002 2.0"]
    assert places["test"].number == 3
    staging = places["staging"]
    assert (len(staging.chips), staging.chips[-1].label, staging.number) == (8, "10 more", 17)
    assert staging.chips[-1].path == "/board/"


def test_a_thousand_servers_are_numbers_that_lead_to_them() -> None:
    places = workspace_graph(stage_graph(STAGED, None, CHANNELS), crowd(1000), 1000)
    chips = {place.node.name: [(chip.label, chip.status, chip.path) for chip in place.chips] for place in places}
    assert chips["test"] == [("3", "failed", "/board/?status=failed")]
    assert chips["approval for production"] == [("997", "approval", "/?kind=approval")]
    assert len(draw_of(list(places))) < 12_000


def node(name: str, level: int, *needs: str, kind: str = "stage") -> GraphNode:
    return GraphNode(name, kind, needs, level, "passed")


def test_texts_are_texts_and_every_chip_is_a_link_with_a_word_for_its_sign() -> None:
    chip = PlaceChip("<b>&", "failed", '" onclick="x', "/servers/<x>/")
    svg = draw_of([GraphPlace(node("<i>", 0), (chip,), 1)])
    root = ET.fromstring(svg)
    (link,) = [a for a in root.iter("a") if "chip" in a.get("class", "")]
    assert link.get("href") == "../servers/<x>/"
    assert "".join(link.itertext()).startswith('<b>&, failed: " onclick="x')
    assert root.get("role") == "group"
    assert [group.get("role") for group in root if group.tag == "g"][1:] == ["list"]
    assert {element.tag for element in root.iter()} <= {"svg", "g", "a", "title", "rect", "path", "text"}
    assert "style=" not in svg


def test_a_picture_alone_is_one_image_in_both_themes_and_loads_nothing() -> None:
    places = server_graph(row(), [item("approval")], STAGED, CHANNELS)
    text = graph_svg_file(places, "Pipeline of atlas")
    root = ET.fromstring(text)
    assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
    assert root.find(f"{SVG}title").text == "Pipeline of atlas"  # type: ignore[union-attr]
    assert "approval for production: 1 approval (2.0, to approve)" in root.find(f"{SVG}desc").text  # type: ignore[union-attr, operator]
    style = root.find(f"{SVG}style").text or ""  # type: ignore[union-attr]
    assert LIGHT["ink"] in style.partition("@media")[0]
    assert DARK["ink"] in style.partition("@media")[2]
    assert "var(" not in text
    assert not re.search(r"<a\b|href|url\(", text)
