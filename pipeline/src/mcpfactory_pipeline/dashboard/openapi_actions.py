"""The part of the API's document that is about acting: two operations for each action, one that checks and one that does."""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_pipeline.dashboard.actions import ACTIONS, Action, Field

__all__ = ["SECURITY", "action_paths"]

SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The token of a person who may act"},
}
_PROBLEM: Final = {"$ref": "#/components/responses/Problem"}
_NAME: Final = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The server.",
    "schema": {"type": "string"},
}
_TEXT: Final = {"type": "string", "maxLength": 500}
_DONE: Final = {
    "type": "object",
    "properties": {
        "server": {"type": "string"},
        "action": {"type": "string"},
        "says": {"type": "string", "description": "What was done, in words"},
        "run": {"type": "string", "description": "The run that was begun, or nothing"},
    },
    "required": ["server", "action", "says", "run"],
}


def action_paths(page: dict[str, Any]) -> dict[str, Any]:
    """Return the paths of all actions; `page` is the schema of what a check answers."""
    return {
        f"/servers/{{name}}/actions/{action.name}/": {"get": _check(action, page), "post": _do(action)}
        for action in ACTIONS.values()
    }


def _check(action: Action, page: dict[str, Any]) -> dict[str, Any]:
    query = [
        {"name": one.name, "in": "query", "required": False, "description": _about(one), "schema": _TEXT}
        for one in action.fields
    ]
    return {
        "operationId": f"check_{action.name}",
        "summary": f"Check: {action.title}",
        "description": f"{action.about} Says what would happen, does nothing, and gives the ticket that confirms it once.",
        "parameters": [_NAME, *query],
        "security": [{"bearer": []}],
        "responses": {"200": _answer(action.title, page), "401": _PROBLEM, "404": _PROBLEM},
    }


def _do(action: Action) -> dict[str, Any]:
    fields = {one.name: {**_TEXT, "description": _about(one)} for one in action.fields}
    ticket = {"type": "string", "description": "The ticket of the check, which was for exactly these values."}
    body = {"type": "object", "properties": {"ticket": ticket, **fields}, "required": ["ticket"]}
    return {
        "operationId": action.name,
        "summary": action.title,
        "description": f"{action.about} Send the `settled` values of the check with its ticket, which is taken once.",
        "parameters": [_NAME],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "security": [{"bearer": []}],
        "responses": {
            "200": _answer(action.title, _DONE), "401": _PROBLEM, "403": _PROBLEM, "404": _PROBLEM, "409": _PROBLEM,
        },
    }  # fmt: skip


def _answer(title: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": title, "content": {"application/json": {"schema": schema}}}


def _about(one: Field) -> str:
    kind = " 1 means yes." if one.kind == "flag" else ""
    return f"{one.label}. {one.about}{kind}".strip()
