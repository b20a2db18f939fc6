"""The dashboard's API as an OpenAPI document: drawn from the table of pages and the classes of the views."""

from __future__ import annotations

import functools
from typing import Any, Final

from pydantic import TypeAdapter

from mcpfactory_pipeline.dashboard.forms import ActionPage
from mcpfactory_pipeline.dashboard.openapi_actions import SECURITY, action_paths
from mcpfactory_pipeline.dashboard.pages import PAGES, Page, Parameter
from mcpfactory_pipeline.dashboard.values import adapter

__all__ = ["api_document"]

_PROBLEM: Final = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"message": {"type": "string"}, "hint": {"type": "string"}},
            "required": ["message", "hint"],
        }
    },
    "required": ["error"],
}


def api_document(url: str, *, acting: bool = False) -> dict[str, Any]:
    """Return the document of the API that answers at `url`; `acting` where people may act there."""
    schemas, definitions = _schemas()
    deeds = action_paths(schemas["action"]) if acting else {}
    how = "what the pages show, as JSON" + ("; and what people can do there." if acting else ", read-only.")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mcpfactory dashboard",
            "version": "1",
            "description": f"Where every server of a workspace stands: {how}",
        },
        "servers": [{"url": url}],
        "paths": {page.path: {"get": _operation(page, schemas[page.name])} for page in PAGES} | deeds,
        "components": {
            **({"securitySchemes": SECURITY} if acting else {}),
            "schemas": {**definitions, "Problem": _PROBLEM},
            "responses": {
                "Problem": {
                    "description": "It cannot be done, or there is no such thing; the hint says what there is",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            },
        },
    }


@functools.cache
def _schemas() -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the schema of each page by its name, and the definitions that they refer to."""
    found, document = TypeAdapter.json_schemas(
        [
            *((page.name, "serialization", adapter(page.type)) for page in PAGES),
            ("action", "serialization", adapter(ActionPage)),
        ],
        ref_template="#/components/schemas/{model}",
    )
    return {name: schema for (name, _mode), schema in found.items()}, document.get("$defs", {})


def _operation(page: Page, schema: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {
        "200": {"description": page.title, "content": {"application/json": {"schema": schema}}}
    }
    if "{" in page.path:
        responses["404"] = {"$ref": "#/components/responses/Problem"}
    return {
        "operationId": f"get_{page.name}",
        "summary": page.title,
        "description": f"{page.about}.",
        "parameters": [_parameter(one) for one in page.parameters],
        "responses": responses,
    }


def _parameter(one: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer", "minimum": 1} if one.number else {"type": "string"}
    if one.values:
        schema["enum"] = list(one.values)
    return {
        "name": one.name,
        "in": one.within,
        "required": one.within == "path",
        "description": f"{one.about}.",
        "schema": schema,
    }
