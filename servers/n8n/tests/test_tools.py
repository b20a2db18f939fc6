"""Tests of the hand-written tools against the mock API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from starlette.responses import JSONResponse, Response
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


# --- unexpected responses of n8n or a proxy ---

PAGE = Response("<!doctype html><html><title>Sign in</title></html>", media_type="text/html")


@pytest.mark.parametrize("other", [PAGE, JSONResponse(None), JSONResponse([]), JSONResponse({"data": None})])
@pytest.mark.parametrize("tool", ["summarize_workflow", "show_workflow", "explain_failures", "change_node"])
def test_an_answer_of_another_form_is_an_error_that_says_so(with_server: Run, tool: str, other: Response) -> None:
    arguments = {"explain_failures": {}, "change_node": {"id": "1000", "node": "Shop", "disabled": True}}

    async def work(client: Client, model: Model) -> None:
        model.instead = {"workflows/1000": other, "executions": other}
        said = await refused(client, tool, **arguments.get(tool, {"id": "1000"}))
        assert "expected an object" in said or "returned a page" in said
        assert "hint: " in said

    with_server(work)


@pytest.mark.parametrize(
    ("page", "read"),
    [({"data": [], "nextCursor": "1"}, 0), ({"data": [failed(1, "1000", "Shop", "x")], "nextCursor": "1"}, 1)],
)
def test_pages_that_never_end_are_left_and_nothing_is_counted_twice(with_server: Run, page: Any, read: int) -> None:
    async def work(client: Client, model: Model) -> None:
        model.instead = {"executions": page}
        found = await told(client, "explain_failures")
        assert (found["looked_at"], [one["times"] for one in found["failures"]]) == (read, [1] * read)
        assert "without new executions" in found["note"]

    with_server(work)


def test_one_odd_run_or_node_spoils_nothing(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        odd = [failed(number, "1000", "Shop", "401") for number in (3, 4, 5, 6)]
        odd[0]["data"]["resultData"]["error"] = "out of memory"
        odd[1]["data"]["resultData"]["error"]["node"] = "Sheet"
        odd[2]["data"] = "[]"
        model.executions[:] = odd
        found = (await told(client, "explain_failures"))["failures"]
        assert sorted((one["node"], one["message"][:13]) for one in found) == [
            ("Sheet", "401: The serv"),
            ("Shop", "401: The serv"),
            ("Shop", "out of memory"),
            ("unknown node", "the execution"),
        ]
        model.workflows["1000"]["nodes"].append({"id": "z", "type": "x.y", "credentials": None})
        outline = await told(client, "summarize_workflow", id="1000")
        assert outline["nodes"][-1]["name"] == "(no name, id z)"
        await told(client, "show_workflow", id="1000")

    with_server(work)


def test_a_null_that_n8n_gave_is_not_sent_back(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.workflows["1000"]["nodes"][0] |= {"credentials": None, "notes": None}
        await told(client, "change_node", id="1000", node="Shop", disabled=True)
        assert model.workflows["1000"]["nodes"][1]["disabled"] is True

    with_server(work)


def test_a_plan_without_variables_is_told_in_the_words_of_n8n(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        model.licensed = False
        said = await refused(client, "list_variables")
        assert "Your license does not allow for feat:variables" in said
        assert "N8N_API_KEY" not in said
        assert "hint: the plan of this n8n" in said

    with_server(work)


# --- consent ---


@pytest.mark.parametrize(
    ("tool", "arguments", "asked"),
    [
        ("change_node", {"id": "1000", "node": "Shop", "disabled": True}, "Shop changed"),
        ("change_node", {"id": "1000", "node": "Shop", "parameters": {"url": "x"}}, "Shop changed"),
    ],
)
def test_a_person_is_asked_before_an_active_workflow_changes(
    with_server: Run, tool: str, arguments: dict[str, Any], asked: str
) -> None:
    questions: list[str] = []

    def person(answer: dict[str, Any]) -> Any:
        def answered(params: dict[str, Any]) -> dict[str, Any]:
            questions.append(params["message"])
            return answer

        return answered

    async def no(client: Client, model: Model) -> None:
        assert "Nothing was changed" in await refused(client, tool, **arguments)
        assert [method for method, _, _ in model.requests if method in ("PUT", "DELETE")] == []

    with_server(no, person=person({"action": "decline"}))
    with_server(no, person=person({"action": "accept", "content": {"go_ahead": False}}))
    with_server(no, person=None)
    assert len(questions) == 2
    assert asked in questions[0]

    async def yes(client: Client, model: Model) -> None:
        await told(client, tool, **arguments)
        assert len([method for method, _, _ in model.requests if method in ("PUT", "DELETE")]) == 1

    with_server(yes)


def test_a_workflow_that_is_not_active_is_changed_without_a_question(with_server: Run) -> None:
    async def work(client: Client, model: Model) -> None:
        await told(client, "change_node", id="1001", node="Shop", disabled=True)

    with_server(work, person=None)


def test_what_was_changed_while_it_was_off_asks_before_it_runs(with_server: Run) -> None:
    questions: list[str] = []
    answers = [{"action": "decline"}, {"action": "accept", "content": {"go_ahead": True}}]

    def person(params: dict[str, Any]) -> dict[str, Any]:
        questions.append(params["message"])
        return answers.pop(0)

    async def work(client: Client, model: Model) -> None:
        await told(client, "deactivate_workflow", id="1000")
        await told(client, "change_node", id="1000", node="Shop", disabled=True)
        await told(client, "change_node", id="1000", node="Sheet", disabled=True)
        assert "Nothing was changed: the person did not agree" in await refused(client, "activate_workflow", id="1000")
        assert not model.workflows["1000"]["active"]
        await told(client, "activate_workflow", id="1000")
        assert model.workflows["1000"]["active"]
        await told(client, "deactivate_workflow", id="1000")
        await told(client, "activate_workflow", id="1000")  # no new change, so no question

    with_server(work, person=person)
    assert len(questions) == 2
    assert "Activate the workflow Order import (1000): Shop changed; Sheet changed" in questions[0]

    async def nobody(client: Client, model: Model) -> None:
        await told(client, "deactivate_workflow", id="1000")
        await told(client, "change_node", id="1000", node="Shop", disabled=True)
        said = await refused(client, "activate_workflow", id="1000")
        assert "N8N_WITHOUT_QUESTIONS" in said
        assert not model.workflows["1000"]["active"]
        await told(client, "activate_workflow", id="1001")

    with_server(nobody, person=None)
