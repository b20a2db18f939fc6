"""OpenAPI document of the dashboard, generated from its pages, actions and views."""

from __future__ import annotations

import functools
from typing import Any, Final

from pydantic import TypeAdapter

from mcpfactory_pipeline.dashboard.action_routes import CancelPage
from mcpfactory_pipeline.dashboard.actions import ACTIONS, ActionPage, FormInput
from mcpfactory_pipeline.dashboard.facts import view_adapter
from mcpfactory_pipeline.dashboard.inbox import BATCHED, BatchPage
from mcpfactory_pipeline.dashboard.pages import PAGES, Page, PageParameter

_BEARER: Final = {"type": "http", "scheme": "bearer", "description": "The token of a person who may act"}
_PROBLEM: Final = {"$ref": "#/components/responses/Problem"}
_STRING: Final = {"type": "string"}
_TEXT: Final = {"type": "string", "maxLength": 500}


def dashboard_openapi_document(url: str, *, acting: bool = False) -> dict[str, Any]:
    """Return the OpenAPI document of the dashboard at `url`."""
    schemas, definitions = _schemas()
    paths = {page.path: {"get": _operation(page, schemas[page.name])} for page in PAGES}
    paths |= _actions(schemas) if acting else {}
    how = "the data of the pages as JSON" + (", and the actions." if acting else ", read-only.")
    problem = {"error": _object(message=_STRING, hint=_STRING)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mcpfactory dashboard",
            "version": "1",
            "description": f"Status of every server in a workspace: {how}",
        },
        "servers": [{"url": url}],
        "paths": paths,
        "components": {
            **({"securitySchemes": {"bearer": _BEARER}} if acting else {}),
            "schemas": {**definitions, "Problem": _object(**problem)},
            "responses": {
                "Problem": _answer(
                    "The request was refused, or its subject does not exist; the hint names alternatives",
                    {"$ref": "#/components/schemas/Problem"},
                )
            },
        },
    }


@functools.cache
def _schemas() -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    views = {**{page.name: page.type for page in PAGES}, "action": ActionPage, "batch": BatchPage, "cancel": CancelPage}
    found, document = TypeAdapter.json_schemas(
        [(name, "serialization", view_adapter(view)) for name, view in views.items()],
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


def _actions(schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    server = _parameter("name", "path", "The server.", _STRING)
    says = {"type": "string", "description": "The result as a sentence"}
    for action in ACTIONS.values():
        found[f"/servers/{{name}}/actions/{action.name}/"] = _check_and_perform(
            (action.name, action.title, action.about),
            server,
            [_parameter(one.name, "query", _about(one), _TEXT) for one in action.fields],
            {one.name: {**_TEXT, "description": _about(one)} for one in action.fields},
            (schemas["action"], _object(server=_STRING, action=_STRING, says=says, run=_STRING)),
        )
    item = "Server, channel, candidate and token `precondition` of the inbox, separated by spaces; one per candidate."
    marked = _parameter("item", "query", item, {"type": "array", "items": _STRING, "maxItems": 60}) | {"required": True}
    one = _object(server=_STRING, ticket=_STRING, channel=_TEXT, candidate=_TEXT, precondition=_TEXT)
    for name in BATCHED:
        found[f"/actions/{name}/"] = _check_and_perform(
            (f"{name}_several", f"{ACTIONS[name].title} several candidates", ACTIONS[name].about),
            None,
            [marked, _parameter("reason", "query", "Reason. Kept in the history of each.", _TEXT)],
            {"items": {"type": "array", "items": one, "maxItems": 60}, "reason": _TEXT},
            (schemas["batch"], _object(action=_STRING, done={"type": "array", "items": says}, items={"type": "array"})),
        )
    about = "Stops a run that was started here: finished stages are kept, running ones are recorded as interrupted."
    run = _parameter("run", "path", "The run.", _STRING)
    found["/runs/{run}/actions/cancel/"] = _check_and_perform(
        ("cancel", "Cancel a run", about), run, [], {}, (schemas["cancel"], _object(run=_STRING, says=says))
    )
    return found


def _check_and_perform(
    words: tuple[str, str, str],
    about: dict[str, Any] | None,
    query: list[dict[str, Any]],
    fields: dict[str, Any],
    answers: tuple[dict[str, Any], dict[str, Any]],
) -> dict[str, Any]:
    """Return the operations for an action."""
    name, title, description = words
    ticket = {"ticket": {"type": "string", "description": "The ticket of a check with exactly these values."}}
    properties = fields if "items" in fields else ticket | fields
    body = {"type": "object", "properties": properties, "required": [next(iter(properties))]}
    place = [about] if about else []
    security: list[dict[str, list[str]]] = [{"bearer": []}]
    refused = dict.fromkeys(("401", "403", "404", "409", "422"), _PROBLEM)
    return {
        "get": {
            "operationId": f"check_{name}",
            "summary": f"Check: {title}",
            "description": f"{description} Returns the effect without executing it, and a ticket to confirm it once.",
            "parameters": [*place, *query],
            "security": security,
            "responses": {"200": _answer(title, answers[0]), **refused},
        },
        "post": {
            "operationId": name,
            "summary": title,
            "description": f"{description} Send the `settled` values of the check with its ticket, valid once.",
            "parameters": place,
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "security": security,
            "responses": {"200": _answer(title, answers[1]), **refused},
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


def _about(one: FormInput) -> str:
    kind = " 1 means yes." if one.kind == "flag" else ""
    return f"{one.label}. {one.about}{kind}".strip()
