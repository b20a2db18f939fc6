"""Tests of summaries, changes to one node, and grouping of failures."""

from __future__ import annotations

import pytest
from upstream import IMPORT, failed

from n8n_mcp.failures import failures
from n8n_mcp.outline import changed, outline


def test_an_outline_tells_what_starts_what_follows_and_what_hangs_loose() -> None:
    found = outline(IMPORT)
    assert (found.triggers, found.unconnected, found.tags) == (["Every hour"], ["Note"], ["production"])
    assert [(node.name, node.next, node.credentials) for node in found.nodes][:3] == [
        ("Every hour", ["Shop"], []),
        ("Shop", ["Sheet"], ["Shop key"]),
        ("Sheet", [], []),
    ]


def test_a_workflow_with_branches_and_holes_is_read() -> None:
    ways = {"If": {"main": [[{"node": "A"}, {"node": "B"}], None, [{"node": "A"}]]}}
    names = [{"name": name, "type": "x.y"} for name in ("If", "A", "B")]
    found = outline({"id": 1, "nodes": names, "connections": ways})
    assert (found.nodes[0].next, found.unconnected) == (["A", "B"], [])
    assert outline({"id": 2}).nodes == []


def test_parameters_are_merged_and_null_takes_one_away() -> None:
    body = changed(IMPORT, "Shop", {"options": {"timeout": None, "retry": 2}, "method": "GET"}, disabled=True)
    shop = body["nodes"][1]
    assert shop["parameters"] == {"url": "https://shop.example.com/orders", "options": {"retry": 2}, "method": "GET"}
    assert shop["disabled"] is True
    assert set(body) == {"name", "nodes", "connections", "settings"}
    assert IMPORT["nodes"][1]["parameters"]["options"] == {"timeout": 1000}
    with pytest.raises(KeyError, match="Nodes: Every hour, Shop"):
        changed(IMPORT, "shop", {}, disabled=None)


def test_what_n8n_does_not_take_back_is_not_sent() -> None:
    nodes = [{**IMPORT["nodes"][0], "forms": {"shown": True}, "onError": "stopWorkflow"}]
    settings = {
        "timezone": "Europe/Berlin",
        "executionTimeout": "DEFAULT",
        "saveManualExecutions": False,
        "binaryMode": "x",
    }
    body = changed({**IMPORT, "nodes": nodes, "settings": settings}, "Every hour", {}, disabled=None)
    assert body["settings"] == {"timezone": "Europe/Berlin", "saveManualExecutions": False}
    assert body["nodes"] == [{**IMPORT["nodes"][0], "onError": "stopWorkflow"}]


def test_failures_are_grouped_by_cause_the_most_frequent_first() -> None:
    runs = [
        failed(9, "1", "Shop", "401"),
        failed(8, "1", "Shop", "401"),
        failed(7, "1", "Sheet", "gone"),
        failed(6, "2", "Shop", "401"),
    ]
    found = failures(runs, {"1": "Import"})
    assert [(one.workflow_name, one.node, one.times, one.executions) for one in found] == [
        ("Import", "Shop", 2, ["9", "8"]),
        ("Import", "Sheet", 1, ["7"]),
        ("", "Shop", 1, ["6"]),
    ]
    assert found[0].message == "401: The service refused the request"
    assert failures([{"id": 1, "workflowId": 3}], {})[0].node == "unknown node"
