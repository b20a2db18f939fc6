from __future__ import annotations

import pytest

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming import name_tools


def name(method: str, path: str, operation_id: str = "") -> str:
    operation = ApiOperation(method, path, "", operation_id=operation_id)
    return name_tools([operation], {})[operation.key]


def names(*keys: str, ids: tuple[str, ...] = ()) -> list[str]:
    split = [key.split(" ") for key in keys]
    operations = [
        ApiOperation(method, path, "", operation_id=ids[index] if ids else "")
        for index, (method, path) in enumerate(split)
    ]
    named = name_tools(operations, {})
    return [named[key] for key in keys]


@pytest.mark.parametrize(
    ("method", "path", "operation_id", "expected"),
    [
        ("GET", "/", "meta/root", "meta_root"),
        ("GET", "/pets", "listPets", "list_pets"),
        ("GET", "/me/messages", "users.GetMail", "users_get_mail"),
        ("GET", "/x", "getHTTPStatus2", "get_http_status2"),
        ("GET", "/chat.postMessage", "chat_postMessage", "chat_post_message"),
        ("GET", "/user/books", "getUserBooks", "get_user_books"),
        ("GET", "/books", "BooksController_findAll", "books_find_all"),
    ],
)
def test_an_operation_id_that_says_something_is_kept(method: str, path: str, operation_id: str, expected: str) -> None:
    assert name(method, path, operation_id) == expected


@pytest.mark.parametrize(
    ("method", "path", "operation_id", "expected"),
    [
        ("GET", "/items/{item_id}", "read_item_items__item_id__get", "read_item"),
        ("POST", "/v1/payment_intents/{intent}/cancel", "PostPaymentIntentsIntentCancel", "cancel_payment_intent"),
        ("GET", "/books/{id}", "get_books_id", "get_book"),
        ("GET", "/books", "list", "list_books"),
        ("GET", "/books", "get", "list_books"),
        ("GET", "/books", "operation_17", "list_books"),
        ("GET", "/books", "9f86d081884c7d65", "list_books"),
        ("GET", "/books", "本", "list_books"),
    ],
)
def test_an_operation_id_made_by_a_machine_gives_way_to_the_path(
    method: str, path: str, operation_id: str, expected: str
) -> None:
    assert name(method, path, operation_id) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("GET /books", "list_books"),
        ("POST /books", "create_book"),
        ("GET /books/{id}", "get_book"),
        ("PUT /books/{id}", "update_book"),
        ("PATCH /books/{id}", "update_book"),
        ("DELETE /books/{id}", "delete_book"),
        ("GET /users/{user}/books", "list_user_books"),
        ("GET /users/{user}/books/{id}", "get_user_book"),
        ("POST /books/{id}/publish", "publish_book"),
        ("GET /books/search", "search_book"),
        ("GET /account", "get_account"),
        ("GET /categories/{id}", "get_category"),
        ("GET /v2/api/status", "get_status"),
        ("HEAD /books/{id}", "check_books"),
        ("QUERY /books", "query_books"),
        ("GET /", "get_root"),
        ("GET /{id}", "get_item"),
    ],
)
def test_without_an_operation_id_method_and_path_make_verb_and_noun(key: str, expected: str) -> None:
    assert names(key) == [expected]


def test_operations_that_would_share_a_name_tell_themselves_apart_by_their_own_words() -> None:
    assert names("PUT /books/{id}", "PATCH /books/{id}") == ["replace_book", "patch_book"]
    assert names("GET /a/x", "GET /b/x", ids=("findIt", "find-it")) == ["find_it_a_x", "find_it_b_x"]
    assert names("GET /books/{isbn}", "GET /books/{id}", ids=("book", "book")) == ["book_by_isbn", "book_by_id"]
    assert names("GET /a", "POST /a", ids=("doThing", "doThing")) == ["do_thing_a_via_get", "do_thing_a_via_post"]


def test_where_words_end_a_digest_of_method_and_path_goes_on() -> None:
    first, second = names("GET /本", "GET /語")
    assert first != second
    assert first.startswith("get_root_")


def test_a_long_name_keeps_its_ends_and_gets_a_digest() -> None:
    long = name("GET", "/x", "packages/list-docker-migration-conflicting-packages-for-authenticated-user")
    assert len(long) <= 64
    assert long.startswith("packages_list_docker_migration")
    assert long == name("GET", "/x", "packages/list-docker-migration-conflicting-packages-for-authenticated-user")


def test_a_pinned_name_stays_and_the_other_gives_way() -> None:
    operations = [
        ApiOperation("GET", "/a/x", "", operation_id="findIt"),
        ApiOperation("GET", "/b/x", "", operation_id="findIt"),
    ]
    named = name_tools(operations, {"GET /b/x": "find_it"})
    assert named == {"GET /b/x": "find_it", "GET /a/x": "find_it_a_x"}


def test_a_pin_that_no_tool_may_have_is_ignored() -> None:
    assert name_tools([ApiOperation("GET", "/books", "")], {"GET /books": "no spaces"}) == {"GET /books": "list_books"}
