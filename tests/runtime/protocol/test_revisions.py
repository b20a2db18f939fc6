"""The records against the specification's published schemas, which are the oracle for every name in them."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.revisions import (
    ASSUMED,
    LATEST,
    LATEST_LEGACY,
    LEGACY,
    MODERN,
    R2024_11_05,
    R2025_03_26,
    R2025_06_18,
    R2025_11_25,
    R2026_07_28,
    REVISIONS,
    SUPPORTED,
    Revision,
    negotiate,
)
from mcpfactory_runtime.revisions.records import successor
from tests.runtime.spec_types import definitions

# attribute of a record → the union in the schema
UNIONS = {
    "requests": "ClientRequest",
    "client_requests": "ServerRequest",
    "notifications": "ServerNotification",
    "client_notifications": "ClientNotification",
}


@pytest.fixture(params=REVISIONS.values(), ids=str)
def revision(request: pytest.FixtureRequest) -> Revision:
    found: Revision = request.param
    return found


@pytest.fixture
def schema(revision: Revision) -> dict[str, Any]:
    return definitions(revision)


def methods(schema: dict[str, Any], union: str) -> set[str]:
    definition = schema.get(union, {})
    members = definition.get("anyOf", [definition] if definition else [])
    resolved = [schema[member["$ref"].rpartition("/")[2]] if "$ref" in member else member for member in members]
    return {member["properties"]["method"]["const"] for member in resolved}


def properties(schema: dict[str, Any], wire_type: str) -> set[str] | None:
    """The property names of a type, wherever the schema of that time keeps them."""
    if wire_type in schema:
        return set(schema[wire_type].get("properties", {}))
    if wire_type == "Annotations":
        return set(schema["Annotated"]["properties"]["annotations"]["properties"])
    message = {"ElicitRequestFormParams": "ElicitRequest"}.get(wire_type, wire_type.removesuffix("Params"))
    if message != wire_type and message in schema:
        return set(schema[message]["properties"]["params"].get("properties", {}))
    return None


@pytest.mark.parametrize("attribute", UNIONS)
def test_methods_are_those_of_the_schema(revision: Revision, schema: dict[str, Any], attribute: str) -> None:
    union = "InputRequest" if revision.modern and attribute == "client_requests" else UNIONS[attribute]
    assert getattr(revision, attribute) == methods(schema, union)


def test_fields_are_those_of_the_schema(revision: Revision, schema: dict[str, Any]) -> None:
    expected = {name: properties(schema, name) or set() for name in revision.fields}
    assert {name: set(fields) for name, fields in revision.fields.items()} == expected


def test_client_capabilities_are_those_of_the_schema(revision: Revision, schema: dict[str, Any]) -> None:
    assert revision.client_capabilities == set(schema["ClientCapabilities"]["properties"])


def test_content_types_are_those_of_the_schema(revision: Revision, schema: dict[str, Any]) -> None:
    block = schema.get("ContentBlock") or schema["CallToolResult"]["properties"]["content"]["items"]
    kinds = {schema[member["$ref"].rpartition("/")[2]]["properties"]["type"]["const"] for member in block["anyOf"]}
    assert revision.content == kinds


def test_batches_exist_where_the_schema_has_them(revision: Revision, schema: dict[str, Any]) -> None:
    assert revision.batches == ("JSONRPCBatchRequest" in schema)


def test_results_carry_their_type_where_the_schema_demands_it(revision: Revision, schema: dict[str, Any]) -> None:
    assert revision.result_type == ("resultType" in schema["Result"].get("required", []))


def test_cacheable_methods_are_those_whose_results_demand_a_lifetime(
    revision: Revision, schema: dict[str, Any]
) -> None:
    from mcpfactory_runtime.revisions.projection import RESULT_TYPES

    demanding = {
        method for method, wire_type in RESULT_TYPES.items() if "ttlMs" in schema.get(wire_type, {}).get("required", [])
    }
    assert revision.cacheable == demanding


def test_input_may_be_required_where_the_schema_says_so(revision: Revision, schema: dict[str, Any]) -> None:
    carriers = {
        request["properties"]["method"]["const"]
        for name, request in schema.items()
        if name.endswith("Request") and "inputResponses" in schema.get(f"{name}Params", {}).get("properties", {})
    }
    assert revision.input_requests == carriers


def test_ids_of_errors_may_be_missing_where_the_schema_lets_them(revision: Revision, schema: dict[str, Any]) -> None:
    error = schema.get("JSONRPCErrorResponse") or schema["JSONRPCError"]
    assert revision.null_id == ("id" in error["required"])


def test_the_newest_handshake_answers_versions_that_are_unknown_or_have_no_handshake() -> None:
    assert negotiate("tomorrow") is LATEST_LEGACY
    assert negotiate(LATEST.name) is LATEST_LEGACY
    assert all(negotiate(name) is revision for name, revision in LEGACY.items())


def test_the_revisions_are_in_order() -> None:
    every = list(REVISIONS.values())
    assert every[:5] == [R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28]
    assert [revision.name for revision in every] == sorted(REVISIONS)
    assert [every[-1], R2025_11_25, R2025_03_26] == [LATEST, LATEST_LEGACY, ASSUMED]
    assert list(MODERN.values()) == every[4:]
    assert SUPPORTED[0] == LATEST.name
    assert repr(LATEST) == f"<revision {LATEST}>"


def test_a_delta_cannot_lose_what_was_never_there() -> None:
    with pytest.raises(AssertionError):
        successor(LATEST, "next", drop={"requests": "ping"})
    with pytest.raises(AssertionError):
        successor(LATEST, "next", drop_fields={"Tool": "execution"})
