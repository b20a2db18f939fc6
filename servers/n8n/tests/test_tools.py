"""The tools of ours against the modelled API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpfactory_runtime.client import Client
from upstream import Model, failed

Run = Callable[..., Any]


async def told(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.get("isError"), result["content"]
    return result["structuredContent"]


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result["isError"]
    return str(result["content"][0]["text"])


def test_failures_are_read_page_by_page_and_explained(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        found = await told(client, "explain_failures")
        assert found["looked_at"] == 4
        assert [(one["workflow_name"], one["node"], one["times"]) for one in found["failures"]] == [
            ("Order import", "Shop", 2),
            ("Newsletter", "Sheet", 1),
            ("(deleted)", "Shop", 1),
        ]
        model.executions[:] = [failed(number, "1000", "Shop", "x" * 3000) for number in range(120, 0, -1)]
        many = await told(client, "explain_failures", workflowId="1000", most=110)
        assert (many["looked_at"], many["failures"][0]["times"]) == (110, 110)

    with_server(work)


def test_one_node_is_changed_and_the_rest_stays(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        before = (await told(client, "summarize_workflow", id="1000"))["updated"]
        changes = {"parameters": {"url": "https://new.example.com"}, "expectUpdated": before}
        after = await told(client, "change_node", id="1000", node="Shop", **changes)
        assert after["updated"] != before
        nodes = model.workflows["1000"]["nodes"]
        assert (nodes[1]["parameters"]["url"], nodes[1]["parameters"]["options"]) == (
            "https://new.example.com",
            {"timeout": 1000},
        )
        assert nodes[1]["credentials"] == {"httpHeaderAuth": {"id": "c1", "name": "Shop key"}}
        assert len(nodes) == 4

    with_server(work)


def test_nothing_is_changed_where_somebody_else_was_faster(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        stale = await refused(client, "change_node", id="1000", node="Shop", disabled=True, expectUpdated="2020-01-01")
        assert "was changed on 2026-11-01" in stale
        model.reads, model.meddle_after = 0, 1
        assert "by somebody else" in await refused(client, "change_node", id="1000", node="Shop", disabled=True)
        assert "Nothing would change" in await refused(client, "change_node", id="1000", node="Shop")
        assert "There is no node" in await refused(client, "change_node", id="1000", node="Shop!", disabled=True)
        assert [method for method, _, _ in model.requests if method == "PUT"] == []

    with_server(work)


def test_a_workflow_is_shown_with_its_executions_and_its_page(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        result = await client.call_tool("show_workflow", {"id": "1000"})
        assert "Shop [n8n-nodes-base.httpRequest] → Sheet" in result["content"][0]["text"]
        assert [run["status"] for run in result["structuredContent"]["executions"]] == ["error", "error", "success"]
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        page = await client.read_resource(tools["show_workflow"]["_meta"]["ui"]["resourceUri"])
        assert "ui/initialize" in page[0]["text"]
        assert "https://" not in page[0]["text"]

    with_server(work)


def test_refusals_come_in_the_words_of_n8n(with_server: Run) -> None:
    async def work(client: Client, _: Model) -> None:
        assert "Not Found" in await refused(client, "summarize_workflow", id="9")

    with_server(work)

    async def stranger(client: Client, _: Model) -> None:
        assert "401 Unauthorized" in await refused(client, "list_workflows")

    with_server(stranger, token="wrong")
