"""The index behind search mode: forms of words, words that mean alike, and what is preferred among tools that match."""

from __future__ import annotations

from itertools import permutations

import pytest

from mcpfactory_runtime.server.generated.search_index import IndexedTool, SearchIndex
from mcpfactory_runtime.server.generated.search_words import identifier_words, stem

SHOP = [
    IndexedTool("list_invoices", "List invoices", "Returns your invoices.", "GET /invoices"),
    IndexedTool("list_invoice_lines", "List the lines of an invoice", "Returns lines.", "GET /invoices/{id}/lines"),
    IndexedTool("create_invoice", "Create an invoice", "Makes a draft.", "POST /invoices"),
    IndexedTool("delete_invoice", "Delete a draft invoice", "Gone for good.", "DELETE /invoices/{id}"),
    IndexedTool("list_customers", "List customers", "Those who have an invoice, too.", "GET /customers"),
    IndexedTool("create_refund", "Create a refund", "", "POST /refunds"),
    IndexedTool("getUserRepos", "", "", "GET /users/{user_id}/repos"),
]


def found(question: str, entries: list[IndexedTool] = SHOP) -> list[str]:
    return [entries[number].name for number, _ in SearchIndex(entries).search(question, 50)]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("list invoices", "list_invoices"),
        ("Which invoices are there?", "list_invoices"),
        ("show the lines of an invoice", "list_invoice_lines"),
        ("write a bill", "create_invoice"),
        ("remove invoice", "delete_invoice"),
        ("INVOICE DELETION", "delete_invoice"),
        ("clients", "list_customers"),
        ("give money back", "create_refund"),
        ("repositories of a user", "getUserRepos"),
    ],
)
def test_the_tool_that_is_meant_comes_first(question: str, first: str) -> None:
    assert found(question)[0] == first


@pytest.mark.parametrize("question", ["", "   ", "the of a", "zzz", "?!", "\0", "é" * 5_000])
def test_a_question_without_a_known_word_finds_nothing(question: str) -> None:
    assert found(question) == []


def test_the_order_of_the_tools_decides_ties_only() -> None:
    expected = found("delete the draft of an invoice")
    for shuffled in list(permutations(SHOP))[:: 7 * 6 * 5]:
        assert found("delete the draft of an invoice", list(shuffled))[:2] == expected[:2]


def test_a_search_may_be_narrowed_and_bounded() -> None:
    index = SearchIndex(SHOP)
    assert [number for number, _ in index.search("invoice", 50, within=[2, 3, 6])] == [2, 3]
    assert len(index.search("invoice", 2)) == 2
    assert SearchIndex([]).search("invoice", 2) == []


@pytest.mark.parametrize(
    "words",
    ["merge merges merged merging", "create creates created creating creation", "list lists listed listing",
     "policy policies", "cancel cancelled cancels", "run running runs", "pay pays paying payment payments"],
)  # fmt: skip
def test_forms_of_a_word_are_one_word(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


def test_names_in_every_spelling_give_the_same_words() -> None:
    spellings = ["listUserRepos", "list_user_repos", "ListUserRepos", "list-user-repos", "/list/user/repos"]
    assert {tuple(identifier_words(name)) for name in spellings} == {("list", "user", "repo")}
    assert identifier_words("getHTTPLog2") == ["get", "http", "log", "2"]
