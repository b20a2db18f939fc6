"""The dashboard's API as an OpenAPI document: from the table of pages, the classes of the views and the table of actions."""

from __future__ import annotations

import functools
from typing import Any, Final

from pydantic import TypeAdapter

from mcpfactory_pipeline.dashboard.actions import ACTIONS, Action, ActionField, ActionPage
from mcpfactory_pipeline.dashboard.batch import BATCHED, BatchPage
from mcpfactory_pipeline.dashboard.cancel import CancelPage
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
        for name in BATCHED:
            paths[f"/actions/{name}/"] = {
                "get": _check_batch(ACTIONS[name], schemas["batch"]),
                "post": _perform_batch(ACTIONS[name]),
            }
        paths["/runs/{run}/actions/cancel/"] = {"get": _check_cancel(schemas["cancel"]), "post": _perform_cancel()}
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
    views = {**{page.name: page.type for page in PAGES}, "action": ActionPage, "batch": BatchPage, "cancel": CancelPage}
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


def _check_batch(action: Action, page: dict[str, Any]) -> dict[str, Any]:
    about = (
        "Server, channel, candidate and the token `expect` of the inbox, with a space between; once for each candidate."
    )
    items = {
        **_parameter("item", "query", about, {"type": "array", "items": {"type": "string"}, "maxItems": 60}),
        "required": True,
    }
    return {
        "operationId": f"check_{action.name}_several",
        "summary": f"Check: {action.title} several candidates",
        "description": f"{action.about} Checks each candidate, does nothing, and gives a ticket for each.",
        "parameters": [items, _parameter("reason", "query", "Reason. Kept in the history of each.", _TEXT)],
        "security": [{"bearer": []}],
        "responses": {"200": _answer(f"{action.title} several", page), "401": _PROBLEM, "422": _PROBLEM},
    }


def _perform_batch(action: Action) -> dict[str, Any]:
    one = _object(server={"type": "string"}, ticket={"type": "string"}, channel=_TEXT, candidate=_TEXT, expect=_TEXT)
    items = {"type": "array", "items": one, "maxItems": 60}
    done = {"type": "array", "items": {"type": "string"}, "description": "What was done, in words"}
    return {
        "operationId": f"{action.name}_several",
        "summary": f"{action.title} several candidates",
        "description": f"{action.about} Send what the check settled for each candidate with its ticket. What has changed since is not done, and the rest is.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {**_object(items=items, reason=_TEXT), "required": ["items"]}}},
        },
        "security": [{"bearer": []}],
        "responses": {
            "200": _answer("All were done", _object(action={"type": "string"}, done=done, items={"type": "array"})),
            **dict.fromkeys(("401", "403", "409", "422"), _PROBLEM),
        },
    }


def _check_cancel(page: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": "check_cancel",
        "summary": "Check: Cancel a run",
        "description": "Says what is at work in a run that was begun in this dashboard, and gives the ticket that ends it once.",
        "parameters": [_parameter("run", "path", "The run.", {"type": "string"})],
        "security": [{"bearer": []}],
        "responses": {"200": _answer("Cancel a run", page), "401": _PROBLEM, "404": _PROBLEM},
    }


def _perform_cancel() -> dict[str, Any]:
    body = _object(ticket={"type": "string", "description": "The ticket of the check."})
    said = _object(run={"type": "string"}, says={"type": "string", "description": "What happens now, in words"})
    return {
        "operationId": "cancel",
        "summary": "Cancel a run",
        "description": "Ends a run in order: what had finished is kept, what was at work is recorded as interrupted.",
        "parameters": [_parameter("run", "path", "The run.", {"type": "string"})],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "security": [{"bearer": []}],
        "responses": {
            "200": _answer("Cancel a run", said),
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
