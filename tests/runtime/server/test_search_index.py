"""The index behind search mode: what is found, what is preferred among tools that match, and that each idea is worth its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mcpfactory_runtime.server.generated.search_index import IndexedTool, RankingWeights, SearchIndex
from tests.subtest_table import parametrize_subtests

SHOP = [
    IndexedTool("list_invoices", "List invoices", "Returns your invoices.", "GET /invoices"),
    IndexedTool("list_invoice_lines", "List the lines of an invoice", "Returns lines.", "GET /invoices/{id}/lines"),
    IndexedTool("create_invoice", "Create an invoice", "Makes a draft.", "POST /invoices"),
    IndexedTool("delete_invoice", "Delete a draft invoice", "Gone for good.", "DELETE /invoices/{id}"),
    IndexedTool("list_customers", "List customers", "Those who have an invoice, too.", "GET /customers"),
    IndexedTool("create_refund", "Create a refund", "", "POST /refunds"),
    IndexedTool("getUserRepos", "", "", "GET /users/{user_id}/repos"),
]
OTHERS = [
    IndexedTool(f"get_{a}{b}", operation=f"GET /{a}{b}s") for a in ("zeb", "yac", "wal", "vel") for b in "oriulexo"
]
"""Tools that no question here is about, so that words are rare."""


def found(question: str, entries: list[IndexedTool] = SHOP, **weights: Any) -> list[str]:
    index = SearchIndex(entries, replace(RankingWeights(), **weights))
    return [entries[number].name for number, _ in index.search(question, 50)]


@parametrize_subtests(
    "question, first",
    [
        ("list invoices", "list_invoices"),
        ("Which invoices are there?", "list_invoices"),
        ("show the lines of an invoice", "list_invoice_lines"),
        ("write a bill", "create_invoice"),
        ("remove invoice", "delete_invoice"),
        ("INVOICE DELETION", "delete_invoice"),
        ("clients", "list_customers"),
        ("give money back", "create_refund"),
        ("give clients their money back", "create_refund"),
        ("I want to get rid of an invoice", "delete_invoice"),
        ("how can I write an invoice", "create_invoice"),
        ("repositories of a user", "getUserRepos"),
    ],
)
def test_the_tool_that_is_meant_comes_first(question: str, first: str) -> None:
    assert found(question)[0] == first


def test_a_search_may_be_narrowed_and_bounded() -> None:
    index = SearchIndex(SHOP)
    assert [number for number, _ in index.search("invoice", 50, within=[2, 3, 6])] == [2, 3]
    assert len(index.search("invoice", 2)) == 2
    assert SearchIndex([]).search("invoice", 2) == []


def tool(name: str, operation: str, title: str = "", description: str = "", **more: Any) -> IndexedTool:
    return IndexedTool(name, title, description, operation, **more)


@parametrize_subtests("neutral, question, other, meant", [
        ({"method": 1.0, "other_method": 1.0}, "end invoices",
         tool("other", "GET /invoices", "Invoices", "The end."), tool("meant", "DELETE /invoices", "Invoices")),
        ({"amount": 1.0}, "which invoices are there",
         tool("other", "GET /invoices/{id}", "Invoices"), tool("meant", "GET /invoices", "Invoices")),
        ({"leaf": 1.0}, "lines of an invoice",
         tool("other", "GET /lines/invoices/x", "Lines of an invoice", "Lines of an invoice"),
         tool("meant", "GET /x/invoices/lines", "Lines of an invoice")),
        ({"deprecated": 1.0}, "list invoices",
         tool("other", "GET /a/invoices", "List invoices", "Deprecated."), tool("meant", "GET /b/invoices", "List invoices", "New.")),
        ({"coverage": 0.0}, "refund parcel",
         tool("other", "GET /refund", "Refund", "Refund refund refund"), tool("meant", "GET /refund/wide/area/code", "Refund", "A parcel")),
        ({"fit": 0.0}, "refunds",
         tool("refund_yacht_sails", "GET /x/refunds", "Refunds", "Refunds"), tool("refunds", "GET /refunds")),
        ({"again": 1.0}, "fee transaction payment",
         tool("other_transaction", "GET /transaction", "Transaction"), tool("meant", "GET /transactions", "Transaction", "with a fee")),
        ({"verb": 1.2}, "charge card", tool("other", "POST /charge", "Charge"), tool("meant", "POST /card", "Card")),
        ({"pronoun": 3.0}, "my invoices", tool("other", "GET /me", "Me"), tool("meant", "GET /invoices", "Invoices")),
        ({"distances": (1.0, 1.0, 1.0, 1.0)}, "parcel of a refund",
         tool("other", "GET /refund", "Refund"), tool("meant", "GET /parcel", "Parcel")),
        ({"synonym": 0.0}, "clients", tool("other", "GET /x"), tool("meant", "GET /customers", "Customers")),
        ({"association": 0.0}, "telemarketers", tool("other", "GET /x"), tool("meant", "POST /blocked", "Blocked")),
        ({"compound": 0.0}, "moon raker", tool("other", "GET /moon/x/y/z", "Moon"), tool("meant", "GET /moonraker")),
        ({"misspelt": 0.0}, "refnud", tool("other", "GET /x"), tool("meant", "GET /refund", "Refund")),
    ])  # fmt: skip
def test_each_idea_finds_what_is_not_found_without_it(
    neutral: dict[str, Any], question: str, other: IndexedTool, meant: IndexedTool
) -> None:
    entries = [other, meant, *OTHERS]
    assert found(question, entries)[0] == meant.name
    assert found(question, entries, **neutral)[:1] != [meant.name]


@pytest.mark.parametrize(
    ("question", "schema"),
    [
        ("reboot", {"properties": {"type": {"enum": ["reboot", "resize"]}}}),
        ("reboot", {"properties": {"a": {"items": {"anyOf": [{"properties": {"b": {"enum": [1, None, "reboot"]}}}]}}}}),
        ("postcode", {"properties": {"a": {"description": "With a postcode."}}}),
        ("shoe size", {"properties": {"outer": {"properties": {"shoeSize": {}}}}}),
    ],
)
def test_values_names_and_descriptions_of_arguments_are_found(question: str, schema: Any) -> None:
    entries = [*OTHERS, IndexedTool.from_wire({"name": "act", "inputSchema": schema}, "POST /things/{id}")]
    assert found(question, entries) == ["act"]


def test_what_is_indexed_of_one_tool_is_bounded() -> None:
    schema: Any = {
        "properties": {
            f"p{n}": {"enum": [f"v{n}-{m}" for m in range(50)], "description": "x " * 900} for n in range(900)
        }
    }
    entry = IndexedTool.from_wire({"name": "huge", "inputSchema": schema})
    assert len(entry.arguments) <= 60
    assert len(entry.values) <= 80
    assert len(" ".join(entry.details)) <= 20 * 121


@pytest.mark.parametrize("question", ["größe", "请求退款", "退款"])
def test_other_scripts_are_found(question: str) -> None:
    entries = [
        *OTHERS,
        tool("sizes", "GET /x", description="Die Größe eines Schuhs."),
        tool("refund", "POST /y", "申请退款"),
    ]
    assert len(found(question, entries)) == 1
