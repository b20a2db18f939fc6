"""Texts and names that a framework wrote give way to the texts of people and to the path."""

from __future__ import annotations

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming.tools import name_tools
from mcpfactory_codegen.openapi.summaries import without_framework_summaries
from tests.subtest_table import parametrize_subtests

TITLED = {"operation_id": "read_item_items__item_id__get", "description": "Return one item."}


def kept(*operations: ApiOperation) -> list[str]:
    return [one.summary for one in without_framework_summaries(operations)]


@parametrize_subtests(
    "summary, more, expected",
    [
        ("Read Item", TITLED, ""),
        ("Read Item Items  Item Id  Get", TITLED, ""),
        ("Read Item", {**TITLED, "description": ""}, "Read Item"),
        ("findById", {"operation_id": "findById_1", "description": "Return one item."}, ""),
        ("Read item", TITLED, "Read item"),
        ("Read One Item", TITLED, "Read One Item"),
    ],
)
def test_summary_in_the_spelling_of_the_name_gives_way_to_a_description(
    summary: str, more: dict[str, str], expected: str
) -> None:
    assert kept(ApiOperation("GET", "/items/{item_id}", "", summary=summary, **more)) == [expected]


def test_summary_of_several_paths_that_names_nothing_is_left_out() -> None:
    rows = (("/orders", "Handle the incoming request."), ("/rooms", "Handle the incoming request."))
    shared = [ApiOperation("POST", path, "", summary=summary) for path, summary in rows]
    assert kept(*shared) == ["", ""]
    assert kept(shared[0]) == ["Handle the incoming request."]
    named = [ApiOperation(method, "/orders", "", summary="The customer") for method in ("GET", "POST")]
    assert kept(*named) == ["The customer", "The customer"]
    listed = [ApiOperation("GET", path, "", summary="List orders") for path in ("/orders", "/v2/orders")]
    assert kept(*listed) == ["List orders", "List orders"]


@parametrize_subtests(
    "operations, expected",
    [
        ([("GET", "/api/v1/owner/properties", "get_api_v1_owner_properties")], ["list_owner_properties"]),
        ([("POST", "/api/v1/orders/{order}/pay", "post_api_v1_orders_pay")], ["pay_order"]),
        ([("GET", "/Books({ID})", "Books.Book.GetBook"), ("GET", "/Authors(ID={ID})", "")], ["get_book", "get_author"]),
        (
            [
                ("GET", "/items", "read_items_items_get"),
                ("GET", "/users/{id}/items", "read_items_users__id__items_get"),
            ],
            ["read_items", "read_items_user"],
        ),
        (
            [("GET", "/v1/books/{book}", "Shop_GetBook"), ("GET", "/v1/rooms/{room}/books/{book}", "Shop_GetBook2")],
            ["shop_get_book", "shop_get_book_room"],
        ),
        ([("GET", "/pets", "findAll"), ("GET", "/owners", "findAll_1")], ["find_all", "find_all_owner"]),
    ],
)
def test_names_that_a_framework_made_get_words_of_the_path(
    operations: list[tuple[str, str, str]], expected: list[str]
) -> None:
    made = [ApiOperation(method, path, "", operation_id=name) for method, path, name in operations]
    named = name_tools(made, {})
    assert [named[one.key] for one in made] == expected
