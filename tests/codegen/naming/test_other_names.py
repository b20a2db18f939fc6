from __future__ import annotations

from mcpfactory_codegen.inputs import Input, Place, name_arguments
from mcpfactory_codegen.ir import ApiOperation, ApiSecurityScheme
from mcpfactory_codegen.naming import name_modules
from mcpfactory_codegen.naming.environment_variables import name_variables
from tests.subtest_table import parametrize_subtests


def arguments(*slots: tuple[Place, str]) -> list[str]:
    named = name_arguments([Input(place, wire, {}, required=False) for place, wire in slots])
    return [named[slot] for slot in slots]


@parametrize_subtests(
    "wire, expected",
    [
        ("bookId", "bookId"),
        ("limit", "limit"),
        ("X-Request-Id", "x_request_id"),
        ("filter[name]", "filter_name"),
        ("$filter", "filter"),
        ("page.size", "page_size"),
        ("from", "from_"),
        ("api", "api_"),
        ("2fa", "query_2fa"),
        ("id", "id"),
    ],
)
def test_the_apis_own_spelling_is_kept_where_python_allows_it(wire: str, expected: str) -> None:
    assert arguments(("query", wire)) == [expected]


def operation(path: str, *tags: str, method: str = "GET") -> ApiOperation:
    return ApiOperation(method, path, "", tags=tags)


def test_a_module_is_the_first_tag_or_the_first_word_of_the_path() -> None:
    operations = [operation("/a", "Pet Store", "x"), operation("/v1/users/{id}"), operation("/{id}")]
    assert name_modules(operations) == {"GET /a": "pet_store", "GET /v1/users/{id}": "users", "GET /{id}": "default"}
    assert name_modules([operation("/x", "import")]) == {"GET /x": "import_"}


def test_a_large_group_is_divided_by_the_words_of_its_paths() -> None:
    operations = [operation(f"/shop/{part}/{number}", "shop") for part in ("books", "games") for number in range(40)]
    assert set(name_modules(operations).values()) == {"shop_books", "shop_games"}


def variables(server: str, *schemes: tuple[str, str]) -> list[tuple[str, ...]]:
    records = [ApiSecurityScheme(name, kind) for name, kind in schemes]  # type: ignore[arg-type]  # kinds as plain texts
    return list(name_variables(records, server).values())


def test_variables_are_short_where_one_scheme_needs_no_name() -> None:
    assert variables("bookshop", ("apiKey", "apiKey")) == [("MCPF_BOOKSHOP_API_KEY",)]
    assert variables("bookshop", ("basicAuth", "basic")) == [("MCPF_BOOKSHOP_USERNAME", "MCPF_BOOKSHOP_PASSWORD")]
    assert variables("book-shop", ("bearerAuth", "bearer")) == [("MCPF_BOOK_SHOP_TOKEN",)]
    assert variables("petstore", ("petstore_auth", "bearer"), ("api_key", "apiKey")) == [
        ("MCPF_PETSTORE_TOKEN",),
        ("MCPF_PETSTORE_API_KEY",),
    ]
