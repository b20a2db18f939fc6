"""Which tools compete, and which do not: pairs that people took for one another, and pairs that they did not."""

from __future__ import annotations

from mcpfactory_pipeline.checks.evaluation.confusable_tools import find_competing_tools, find_token_heavy_tools


def tool(name: str, description: str = "", **more: object) -> dict[str, object]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def pairs(*tools: dict[str, object]) -> list[tuple[str, str]]:
    return [one.tools for one in find_competing_tools(tools)]


def test_names_of_the_same_words_compete_whatever_is_said_of_them():
    found = pairs(tool("get_user", "Return one user by its number."), tool("get_users", "List everybody."))
    assert found == [("get_user", "get_users")]


def test_texts_that_are_nearly_the_same_compete_until_one_names_the_other():
    about = "Return the delivery address of a customer with street, city and postal code"
    first, second = tool("fetch_address", f"{about}."), tool("update_address", f"{about}.")
    assert pairs(first, second) == [("fetch_address", "update_address")]
    assert pairs(first, tool("update_address", f"{about}. To read it: fetch_address.")) == []


def test_tools_that_say_what_they_do_do_not_compete():
    assert (
        pairs(
            tool("list_books", "Find books by words of their title."),
            tool("get_book", "Return one book by its ISBN."),
            tool("place_order", "Buy copies of books for an address."),
            tool("list_documents", "Get all documents."),
            tool("list_partners", "Get all partners."),
        )
        == []
    )


def test_a_tool_that_is_not_found_by_its_own_words_competes_with_the_one_that_is():
    kinds = ("drafts", "debtors", "creditors", "years")
    others = [tool(f"find_{kind}_invoices", f"Find invoices of {kind}.") for kind in kinds]
    (found,) = find_competing_tools([tool("look", "Find invoices."), *others])
    assert (found.tools, found.why.startswith("what look says of itself fits")) == (
        ("look", "find_drafts_invoices"),
        True,
    )
    assert find_competing_tools([tool("look", "Find invoices."), *others[:2]]) == []
    assert find_competing_tools([tool("look", "Find invoices; find_drafts_invoices has drafts."), *others]) == []


def test_a_tool_is_expensive_by_its_share_and_not_when_all_are_small():
    small = [tool(f"tool_{number}", "Say hello.") for number in range(6)]
    assert find_token_heavy_tools(small) == []
    found = find_token_heavy_tools([*small, tool("large", "word " * 2000)])
    assert [one.tool for one in found] == ["large"]
    assert 0.8 < found[0].share < 1
