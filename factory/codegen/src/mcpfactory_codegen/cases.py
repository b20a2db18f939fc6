"""One call of every tool, the request it must make, and the answer: what tests and checks hold a server against.

The expected request follows from the IR by the plain rules below and by nothing else, least of all by the runtime's
own request builder, which is what the cases test. What the plain rules do not cover is left out of `request`: a
part that is absent is not compared. A tool whose path they cannot state, or whose operation has a server of its own
(which a stub cannot stand in for), has no case; nor has one whose request would be the same as another's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote

from mcpfactory_runtime.server.json_schema import ArgumentError, ArgumentValidator, compile_schema

from .inputs import Input, inputs, lookup
from .ir import Api, Operation, Response
from .naming import Names
from .samples import NOTHING, sample
from .tokens import compact
from .tools import Tool

__all__ = ["cases"]

_SAFE = re.compile(r"[A-Za-z0-9._~-]+\Z")
_JSON = re.compile(r"application/([\w.+-]+\+)?json\Z")


def cases(api: Api, names: Names, tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """`{"tool", "arguments", "request", "response"}` for every tool for which sample arguments can be made."""
    operations = {operation.key: operation for operation in api.operations}
    made: dict[str, dict[str, Any]] = {}
    for tool in tools:
        case = _case(operations[tool.key], tool, api, names)
        if case is not None:
            request = case["request"]
            made.setdefault(compact([request["method"], request["path"], request.get("query")]), case)
    return list(made.values())


def _case(operation: Operation, tool: Tool, api: Api, names: Names) -> dict[str, Any] | None:
    named = names.operations[operation.key]
    items = inputs(operation, api).items
    sent = {**tool.defaults, **tool.fixed}  # by the server itself: what is expected without being given
    made = {}
    for item in items:
        argument = named.arguments[item.slot]
        value = sent[argument] if argument in sent else _value(item, api)
        if value is not NOTHING and (argument in sent or argument in tool.bindings):
            made[item.slot] = value
    own = {item.slot for item in items if named.arguments[item.slot] in sent}
    if any(item.required and item.slot not in made for item in items):
        return None
    accepts = compile_schema(tool.input_schema)
    for chosen in (_shown, _needed):
        values = {
            item.slot: made[item.slot] for item in items if item.slot in made and (item.slot in own or chosen(item))
        }
        arguments = {named.arguments[slot]: value for slot, value in values.items() if slot not in own}
        request = _request(operation, items, values)
        if request and _fits(arguments, accepts):
            response = _response(operation, api)
            return {"tool": tool.name, "arguments": arguments, "request": request, "response": response}
    return None


def _fits(arguments: dict[str, Any], accepts: ArgumentValidator) -> bool:
    """Whether the tool's own schema takes the sample; composed schemas can ask for more than `samples` sees."""
    try:
        return accepts.validate(arguments) == arguments
    except ArgumentError:
        return False


def _needed(item: Input) -> bool:
    return item.required


def _shown(item: Input) -> bool:
    """Optional arguments are given too, so that their binding is tested; not where nothing plain can be said of them."""
    return item.required or (item.place in {"query", "body", "header", "form"} and not item.deprecated)


def _value(item: Input, api: Api) -> Any:
    if item.encoding is not None and item.encoding.file:
        text = {"text": "content", "filename": "a.txt"} if item.name else "content"
        schema = item.schema if isinstance(item.schema, dict) else {}
        return [text] if schema.get("type") == "array" else text
    example = item.parameter.example if item.parameter is not None else None
    if isinstance(example, str) and isinstance(item.schema, dict) and item.schema == {"type": "string"} and example:
        value: Any = example
    else:
        value = sample(item.schema, api.schemas)
    if item.place == "path" and not (isinstance(value, int) or (isinstance(value, str) and _SAFE.match(value))):
        value = sample(_without_examples(lookup(item.schema, api.schemas)), api.schemas)
    if item.place == "header" and isinstance(value, str) and not value.isascii():
        return "value"
    return value


def _without_examples(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in schema.items() if key not in {"example", "examples", "default"}}


# --- the request ---


def _request(operation: Operation, items: Sequence[Input], values: dict[tuple[str, str], Any]) -> dict[str, Any]:
    """What the plain rules say of the request; {} when they do not know its path."""
    given = [(item, values[item.slot]) for item in items if item.slot in values]
    path = _path(operation.path, given)
    if path is None or operation.server:
        return {}
    request: dict[str, Any] = {"method": operation.method, "path": path}
    query = _query(given)
    if query is not None and "?" not in operation.path:
        request["query"] = query
    elif "?" in operation.path and "{" not in operation.path.partition("?")[2]:
        literal = parse_qsl(operation.path.partition("?")[2], keep_blank_values=True)
        request["query"] = [[name, value] for name, value in literal]
    headers = {item.name: text for item, value in given if item.place == "header" and (text := _header(item, value))}
    if headers:
        request["headers"] = headers
    if operation.body is not None and _JSON.match(operation.body.content_type.split(";")[0].strip()):
        body = _json(given)
        if body is not NOTHING:
            request["json"] = body
    return request


def _path(template: str, given: Sequence[tuple[Input, Any]]) -> str | None:
    """The decoded path below the API's base; None where a value is written in a way that needs more than these rules.

    Style simple, the default: a scalar as it is, an array joined by commas. A dot leads style label, `;name=` matrix.
    """
    values = {item.name: (item, value) for item, value in given if item.place == "path"}
    parts = re.split(r"\{([^{}]*)\}", re.split(r"[?#]", template, maxsplit=1)[0])
    for at in range(1, len(parts), 2):
        item, value = values.get(parts[at], (None, None))
        if item is None or item.parameter is None or item.parameter.content_type:
            return None
        texts = [_scalar(one) for one in (value if isinstance(value, list) else [value])]
        if not texts or any(text is None or not text or set(text) <= {"."} or "/" in text for text in texts):
            return None
        if len(texts) > 1 and item.parameter.style not in {"", "simple"}:
            return None
        lead = {"label": ".", "matrix": f";{item.name}="}.get(item.parameter.style, "")
        parts[at] = lead + ",".join(str(text) for text in texts)
    parts[::2] = [unquote(literal) for literal in parts[::2]]
    return "".join(parts)


def _query(given: Sequence[tuple[Input, Any]]) -> list[list[str]] | None:
    """Decoded pairs in the order of the document; None when a style or shape goes beyond the plain rules.

    Scalars are one pair, arrays of scalars one pair an item (style form, exploded: the default of a query).
    """
    pairs: list[list[str]] = []
    for item, value in given:
        if item.place == "querystring":
            return None
        if item.place != "query" or item.parameter is None:
            continue
        parameter = item.parameter
        if parameter.style not in {"", "form"} or parameter.content_type or parameter.allow_reserved:
            return None
        values = value if isinstance(value, list) else [value]
        texts = [_scalar(one) for one in values]
        if any(text is None for text in texts) or (isinstance(value, list) and parameter.explode is False):
            return None
        pairs += [[parameter.name, str(text)] for text in texts]
    return pairs


def _header(item: Input, value: Any) -> str:
    plain = item.parameter is not None and not item.parameter.content_type
    text = _scalar(value) if plain else None
    return text if text is not None and text.strip() == text and text.isprintable() else ""


def _json(given: Sequence[tuple[Input, Any]]) -> Any:
    body = [(item, value) for item, value in given if item.place == "body"]
    if not body:
        return NOTHING
    if body[0][0].name == "":
        return body[0][1]
    return {item.name: value for item, value in body}


def _scalar(value: Any) -> str | None:
    """How a plain value is written in a URL; None for null, objects, arrays, and floats, whose text is open."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | str):
        return str(value)
    return None


# --- the response ---


def _response(operation: Operation, api: Api) -> dict[str, Any]:
    """The documented success: status, media type and a sample body."""
    response = _success(operation.responses)
    if response is None:
        return {"status": 200, "content_type": "application/json", "body": {}}
    status = int(response.status) if response.status.isdigit() else 200
    media = response.content_type.split(";")[0].strip()
    if not media or status in {204, 205, 304}:
        return {"status": status, "content_type": "", "body": None}
    body = sample(response.schema, api.schemas) if response.schema is not None else NOTHING
    if _JSON.match(media):
        return {"status": status, "content_type": media, "body": {} if body is NOTHING else body}
    if media.startswith("text/"):
        return {"status": status, "content_type": media, "body": body if isinstance(body, str) else "text"}
    return {"status": status, "content_type": media if "*" not in media else "text/plain", "body": "content"}


def _success(responses: Sequence[Response]) -> Response | None:
    ranked = sorted(responses, key=lambda response: response.status)
    for response in ranked:
        if response.status.upper().startswith("2"):
            return response
    return next((response for response in ranked if response.status == "default"), None)
