"""Resources and prompts: conversion of requests to handler arguments, and of return values to wire format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic_core import from_json

from mcpfactory_runtime.protocol.connection import Call
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError
from mcpfactory_runtime.protocol.jsonrpc import encode
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.registry import Prompt, Registry, Resource
from mcpfactory_runtime.server.results import Content, EmbeddedBlob, EmbeddedText, Message, content_blocks
from mcpfactory_runtime.server.signature import ArgumentsError, InjectedParameter
from mcpfactory_runtime.server.threads import in_thread
from mcpfactory_runtime.types import Json


def uri_of(call: Call) -> str:
    """Return the URI in a request's parameters."""
    uri = call.params.get("uri")
    if type(uri) is not str:
        raise McpError(INVALID_PARAMS, "Invalid params: uri must be a string")
    return uri


def find_resource(registry: Registry, call: Call) -> tuple[Resource, str, Json]:
    """Return the requested resource or template, the URI, and the handler's arguments."""
    uri = uri_of(call)
    found = _serving(registry, uri)
    if found is None:
        raise not_found(uri, call.peer.revision)
    return found[0], uri, found[1]


def _serving(registry: Registry, uri: str) -> tuple[Resource, Json] | None:
    resource = registry.resource(uri)
    if resource is not None:
        return resource, resource.signature.bind({})
    for template in registry.templates.values():
        values = template.template.match(uri)
        if values is not None:
            if template.template.unsafe(values, template.exempt_params):
                break  # do not try later templates with an unsafe URI
            try:
                return template, template.signature.bind(values)
            except ArgumentsError:
                continue
    return None


async def read_local_resource(
    registry: Registry, uri: str, context: InjectedParameter, revision: Revision
) -> list[Json]:
    """Return the contents of a resource for a handler of the same server."""
    found = _serving(registry, uri)
    value = None if found is None else await _run_own(found[0], found[1], context)
    if found is None or value is None:
        raise ToolError(f"This server has no resource {uri!r}.")
    return to_resource_contents(value, uri, found[0].mime_type, revision)


async def get_local_prompt(registry: Registry, name: str, arguments: Json, context: InjectedParameter) -> list[Json]:
    """Return the messages of a prompt for a handler of the same server."""
    prompt = registry.prompts.get(name)
    if prompt is None:
        raise ToolError(f"This server has no prompt {name!r}.")
    try:
        bound = bind_prompt_arguments(prompt, {"arguments": arguments})
    except McpError as error:
        raise ToolError(error.message) from None
    return to_prompt_messages(await _run_own(prompt, bound, context))


async def _run_own(record: Resource | Prompt, bound: Json, context: InjectedParameter) -> Any:
    if record.signature.context is not None:
        bound[record.signature.context] = context
    return await (record.handler(**bound) if record.is_async else in_thread(record.handler, bound))


def not_found(uri: str, revision: Revision) -> McpError:
    """Return the error for an unknown URI (server/resources, Error Handling)."""
    return McpError(revision.resource_not_found, f"Resource not found: {uri}", {"uri": uri})


def to_resource_contents(value: Any, uri: str, mime_type: str | None, revision: Revision) -> list[Json]:
    """Convert a resource handler's return value to `contents`.

    Text and bytes stay unchanged. Embedded resources keep their URIs. Other values become JSON text.
    """
    if value is None:
        raise not_found(uri, revision)
    if isinstance(value, str):
        return [EmbeddedText(uri, value, mime_type or "text/plain").contents()]
    if isinstance(value, bytes | bytearray):
        return [EmbeddedBlob(uri, bytes(value), mime_type or "application/octet-stream").contents()]
    if isinstance(value, EmbeddedText | EmbeddedBlob):
        return [value.contents()]
    if isinstance(value, list | tuple) and value and all(isinstance(x, EmbeddedText | EmbeddedBlob) for x in value):
        return [item.contents() for item in value]
    text = encode(value).decode()
    return [EmbeddedText(uri, text, mime_type or "application/json").contents()]


def bind_prompt_arguments(prompt: Prompt, params: Json) -> Json:
    """Convert the arguments of prompts/get to arguments of the prompt's handler.

    Strings that do not match a parameter's type are parsed as JSON.
    """
    given = params.get("arguments")
    if given is None:
        given = {}
    if type(given) is not dict or not all(type(value) is str for value in given.values()):
        raise McpError(INVALID_PARAMS, "Invalid params: arguments must be an object of strings")
    try:
        return prompt.signature.bind(given)
    except ArgumentsError as error:
        try:
            return prompt.signature.bind({name: _parsed(value) for name, value in given.items()})
        except ArgumentsError:
            raise McpError(INVALID_PARAMS, f"Invalid params: {error}") from None


def _parsed(value: str) -> Any:
    try:
        return from_json(value)
    except ValueError:
        return value


def to_prompt_messages(value: Any) -> list[Json]:
    """Convert a prompt handler's return value to `messages`. Strings and content blocks get the role `user`."""
    if isinstance(value, str | Content | Message | dict):
        value = [value]
    if not isinstance(value, Iterable):
        raise TypeError(f"a prompt must return text or messages, not {type(value).__name__}")
    return [_message(item) for item in value]


def _message(item: Any) -> Json:
    if isinstance(item, Message):
        return item.to_dict()
    if isinstance(item, dict) and "role" in item:
        content = item.get("content")
        block = content_blocks(content)[0] if isinstance(content, str) else content
        if item["role"] not in ("user", "assistant") or not _is_block(block):
            raise TypeError(f"a prompt returned {_kind(item)}, which is not a message\nhint: {_A_MESSAGE}")
        return {**item, "content": block}
    if not (isinstance(item, str | Content) or _is_block(item)):
        raise TypeError(f"a prompt returned {_kind(item)}, which is neither text nor content\nhint: {_A_MESSAGE}")
    return {"role": "user", "content": content_blocks(item)[0]}


_A_MESSAGE: Final = (
    'return text, content, Message(text, "assistant"), {"role": "user", "content": text}, or a list of these'
)


def _is_block(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _kind(value: Any) -> str:
    return (
        f"an object with {', '.join(map(repr, value)) or 'nothing'}"
        if isinstance(value, dict)
        else type(value).__name__
    )
