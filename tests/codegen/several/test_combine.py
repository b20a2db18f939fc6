"""Several APIs as one: what becomes of operations, schemas, credentials and addresses that have one name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpfactory_codegen.combine import add_label, combine
from mcpfactory_codegen.curation import Selection
from mcpfactory_codegen.ir import Api
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import Document
from mcpfactory_codegen.select import select
from mcpfactory_runtime.schemas.walk import references
from tests.codegen.several.documents import document
from tests.subtest_table import parametrize_subtests

ORDERS, STOCK = "https://orders.acme.test/v1", "https://stock.acme.test/v1"
LIST = "GET /items listItems"


def api(data: dict[str, Any]) -> Api:
    return read_api(Document(data, json.dumps(data).encode(), "json", "api.json"))


def combined(shared: tuple[str, ...] = (), **documents: dict[str, Any]) -> Api:
    labels = {label.replace("_", "-").strip("-"): data for label, data in documents.items()}
    return combine({label: add_label(api(data), label) for label, data in labels.items()}, shared)


def urls(found: Api) -> dict[str, str]:
    """Where each operation is called, by key."""
    servers = {"": found.base_url, **{one.name: one.url for one in found.own_servers}}
    return {one.key: servers[one.server] for one in found.operations}


def test_operations_of_the_same_method_and_path_stay_apart() -> None:
    found = combined(orders=document("Orders", ORDERS, LIST), stock=document("Stock", STOCK, LIST))
    assert urls(found) == {"orders: GET /items": ORDERS, "stock: GET /items": STOCK}
    assert [one.pointer for one in found.operations] == ["orders: /paths/~1items/get", "stock: /paths/~1items/get"]
    assert [one.name for one in found.own_servers] == ["orders", "stock"]
    assert found.servers == ()


@pytest.mark.parametrize("labels", [("orders", "stock"), ("", "stock")])
def test_an_address_that_all_share_is_the_root(labels: tuple[str, str]) -> None:
    first, second = (api(document(name, ORDERS, LIST)) for name in ("Orders", "Stock"))
    found = combine({labels[0]: add_label(first, labels[0]), labels[1]: add_label(second, labels[1])})
    assert (found.servers, found.own_servers) == ((ORDERS,), ())
    assert set(urls(found).values()) == {ORDERS}


def test_the_document_without_a_label_keeps_its_keys_its_address_and_its_credentials() -> None:
    found = combined(_=document("Orders", ORDERS, LIST), stock=document("Stock", STOCK, LIST))
    assert urls(found) == {"GET /items": ORDERS, "stock: GET /items": STOCK}
    assert (found.servers, [one.name for one in found.own_servers]) == ((ORDERS,), ["stock"])
    assert [one.name for one in found.security_schemes] == ["bearerAuth", "stock.bearerAuth"]
    names = name_api(found, server="acme")
    assert names.variables == {"bearerAuth": ("MCPF_ACME_TOKEN",), "stock.bearerAuth": ("MCPF_ACME_STOCK_TOKEN",)}
    assert {key: one.tool for key, one in names.operations.items()} == {
        "GET /items": "list_items", "stock: GET /items": "stock_list_items",
    }  # fmt: skip


# --- schemas ---

TREE = {"type": "object", "properties": {"of": {"$ref": "#/components/schemas/Leaf"}, "$ref": {"type": "string"}}}


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        ({"type": "string"}, {"Item", "Tree", "Leaf"}),
        ({"type": "integer"}, {"Item", "orders_Tree", "stock_Tree", "orders_Leaf", "stock_Leaf"}),
    ],
)
def test_schemas_that_are_equal_are_one_and_others_have_the_label(leaf: dict[str, Any], expected: set[str]) -> None:
    documents = {}
    for label, url, kind in (("orders", ORDERS, {"type": "string"}), ("stock", STOCK, leaf)):
        one = documents[label] = document(label, url, LIST, schemas={"Tree": TREE, "Leaf": kind})
        body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}}
        one["paths"]["/trees"] = {"post": {"operationId": "addTree", "requestBody": body, "responses": {}}}
    found = combined(**documents)
    assert set(found.schemas) == expected
    for operation in found.operations:
        schemas = [one.schema for one in operation.responses if one.schema is not None]
        schemas += [operation.body.schema] if operation.body is not None else []
        for name in (name for schema in schemas for name in references(schema)):
            assert name in found.schemas
            assert not name.startswith(("orders_", "stock_")) or name.startswith(f"{operation.label}_")
    trees = [schema for name, schema in found.schemas.items() if name.endswith("Tree")]
    assert all("$ref" in tree["properties"] for tree in trees if isinstance(tree, dict))


# --- credentials ---

KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}
LOGIN = {
    "type": "oauth2",
    "flows": {"clientCredentials": {"tokenUrl": "/token", "scopes": {}}},
}


@parametrize_subtests(
    "second, url, shared, expected",
    [
        (None, STOCK, (), {"orders.bearerAuth", "stock.bearerAuth"}),
        (None, STOCK, ("orders",), {"orders.bearerAuth", "stock.bearerAuth"}),
        (None, STOCK, ("orders", "stock"), {"bearerAuth"}),
        (KEY, STOCK, ("orders", "stock"), {"orders.bearerAuth", "stock.bearerAuth"}),
        (None, "https://orders.acme.test/v2", (), {"bearerAuth"}),
        (None, "https://orders.acme.test:444/v2", (), {"orders.bearerAuth", "stock.bearerAuth"}),
        (None, "", (), {"orders.bearerAuth", "stock.bearerAuth"}),
    ],
)
def test_each_document_has_its_own_credentials_unless_they_go_to_one_host_or_are_declared_one(
    second: dict[str, Any] | None, url: str, shared: tuple[str, ...], expected: set[str]
) -> None:
    found = combined(shared, orders=document("Orders", ORDERS, LIST), stock=document("Stock", url, LIST, scheme=second))
    assert {one.name for one in found.security_schemes} == expected
    assert {name for one in found.operations for names in one.security for name in names} == expected


def test_addresses_of_logins_are_those_of_the_document() -> None:
    found = combined(
        orders=document("Orders", ORDERS, LIST, scheme=LOGIN), stock=document("Stock", STOCK, LIST, scheme=LOGIN)
    )
    tokens = {one.name: one.flows[0].token_url for one in found.security_schemes}
    assert tokens == {
        "orders.bearerAuth": "https://orders.acme.test/token", "stock.bearerAuth": "https://stock.acme.test/token",
    }  # fmt: skip


# --- names and selections ---


def test_the_label_tells_apart_what_two_documents_call_the_same_whatever_their_order() -> None:
    many = ("GET /items listItems", "GET /items/{id} getItem", "POST /orders createOrder")
    documents = {"orders": document("Orders", ORDERS, *many), "stock-2": document("Stock", STOCK, *many[:2])}
    apis = {label: add_label(api(data), label) for label, data in documents.items()}
    names = name_api(combine(apis), server="acme")
    assert {key: one.tool for key, one in names.operations.items()} == {
        "orders: GET /items": "orders_list_items",
        "orders: GET /items/{id}": "orders_get_item",
        "orders: POST /orders": "create_order",
        "stock-2: GET /items": "stock_2_list_items",
        "stock-2: GET /items/{id}": "stock_2_get_item",
    }
    turned = name_api(combine(dict(reversed(apis.items()))), server="acme")
    assert turned.operations == names.operations
    assert {one.module for one in names.operations.values()} == {"orders_items", "stock_2_items"}


def test_a_name_that_was_published_stays_and_the_new_one_gets_the_label() -> None:
    found = combined(orders=document("Orders", ORDERS, LIST), stock=document("Stock", STOCK, LIST))
    names = name_api(found, server="acme", pinned={"orders: GET /items": "list_items"})
    assert {key: one.tool for key, one in names.operations.items()} == {
        "orders: GET /items": "list_items", "stock: GET /items": "stock_list_items",
    }  # fmt: skip


@parametrize_subtests(
    "term, expected",
    [
        ("listItems", {"orders", "stock"}),
        ("stock: listItems", {"stock"}),
        ("stock: get /items", {"stock"}),
        ("GET /items", {"orders", "stock"}),
        ("shop: GET /items", set()),
    ],
)
def test_a_label_may_lead_what_a_selection_names(term: str, expected: set[str]) -> None:
    found = combined(orders=document("Orders", ORDERS, LIST), stock=document("Stock", STOCK, LIST))
    chosen = select(found, Selection(include_operations=(term,)))
    assert {one.label for one in chosen.operations} == expected
