"""The dashboard's API as an OpenAPI document: from the table of pages, the classes of the views and the table of actions."""

from __future__ import annotations

import functools
from typing import Any, Final

from pydantic import TypeAdapter

from mcpfactory_pipeline.dashboard.actions import ACTIONS, Action, ActionField, ActionPage
from mcpfactory_pipeline.dashboard.pages import PAGES, Page, PageParameter
from mcpfactory_pipeline.dashboard.values import adapter

__all__ = ["api_document"]

_BEARER: Final = {"type": "http", "scheme": "bearer", "description": "The token of a person who may act"}
_PROBLEM: Final = {"$ref": "#/components/responses/Problem"}
_TEXT: Final = {"type": "string", "maxLength": 500}


def api_document(url: str, *, acting: bool = False) -> dict[str, Any]:
    """Return the document of the API that answers at `url`; `acting` where people may act there."""
    schemas, definitions = _schemas()
    paths = {page.path: {"get": _operation(page, schemas[page.name])} for page in PAGES}
    if acting:
        for action in ACTIONS.values():
            operations = {"get": _check(action, schemas["action"]), "post": _perform(action)}
            paths[f"/servers/{{name}}/actions/{action.name}/"] = operations
    how = "what the pages show, as JSON" + ("; and what people can do there." if acting else ", read-only.")
    problem = {"error": _object(message={"type": "string"}, hint={"type": "string"})}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mcpfactory dashboard",
            "version": "1",
            "description": f"Where every server of a workspace stands: {how}",
        },
        "servers": [{"url": url}],
        "paths": paths,
        "components": {
            **({"securitySchemes": {"bearer": _BEARER}} if acting else {}),
            "schemas": {**definitions, "Problem": _object(**problem)},
            "responses": {
                "Problem": _answer(
                    "It cannot be done, or there is no such thing; the hint says what there is",
                    {"$ref": "#/components/schemas/Problem"},
                )
            },
        },
    }


@functools.cache
def _schemas() -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the schema of each page by its name, and the definitions that they refer to."""
    views = {**{page.name: page.type for page in PAGES}, "action": ActionPage}
    found, document = TypeAdapter.json_schemas(
        [(name, "serialization", adapter(view)) for name, view in views.items()],
        ref_template="#/components/schemas/{model}",
    )
    return {name: schema for (name, _mode), schema in found.items()}, document.get("$defs", {})


def _operation(page: Page, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": f"get_{page.name}",
        "summary": page.title,
        "description": f"{page.about}.",
        "parameters": [_page_parameter(one) for one in page.parameters],
        "responses": {"200": _answer(page.title, schema), **({"404": _PROBLEM} if "{" in page.path else {})},
    }


def _check(action: Action, page: dict[str, Any]) -> dict[str, Any]:
    query = [_parameter(one.name, "query", _about(one), _TEXT) for one in action.fields]
    return {
        "operationId": f"check_{action.name}",
        "summary": f"Check: {action.title}",
        "description": f"{action.about} Says what would happen, does nothing, and gives the ticket that confirms it once.",
        "parameters": [_parameter("name", "path", "The server.", {"type": "string"}), *query],
        "security": [{"bearer": []}],
        "responses": {"200": _answer(action.title, page), "401": _PROBLEM, "404": _PROBLEM},
    }


def _perform(action: Action) -> dict[str, Any]:
    fields = {one.name: {**_TEXT, "description": _about(one)} for one in action.fields}
    ticket = {"type": "string", "description": "The ticket of the check, which was for exactly these values."}
    body = {"type": "object", "properties": {"ticket": ticket, **fields}, "required": ["ticket"]}
    done = _object(
        server={"type": "string"},
        action={"type": "string"},
        says={"type": "string", "description": "What was done, in words"},
        run={"type": "string", "description": "The run that was begun, or nothing"},
    )
    return {
        "operationId": action.name,
        "summary": action.title,
        "description": f"{action.about} Send the `settled` values of the check with its ticket, which is taken once.",
        "parameters": [_parameter("name", "path", "The server.", {"type": "string"})],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "security": [{"bearer": []}],
        "responses": {
            "200": _answer(action.title, done),
            **dict.fromkeys(("401", "403", "404", "409"), _PROBLEM),
        },
    }


def _page_parameter(one: PageParameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer", "minimum": 1} if one.number else {"type": "string"}
    if one.values:
        schema["enum"] = list(one.values)
    return _parameter(one.name, one.within, f"{one.about}.", schema)


def _parameter(name: str, within: str, about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": within, "required": within == "path", "description": about, "schema": schema}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _answer(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _about(one: ActionField) -> str:
    kind = " 1 means yes." if one.kind == "flag" else ""
    return f"{one.label}. {one.about}{kind}".strip()
