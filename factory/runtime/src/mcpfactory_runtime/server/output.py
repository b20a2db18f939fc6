"""What a tool returned → `content` and `structuredContent`; its return annotation → `outputSchema`.

Structured content must be an object in all revisions but the newest, so anything else is wrapped as `{"result": …}` with
a schema to match: one schema fits all peers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_origin

from pydantic_core import SchemaValidator, to_json

from mcpfactory_runtime.server.results import Content, ToolResult, content_blocks
from mcpfactory_runtime.server.schema.annotations import builtin_schema

__all__ = ["Converter", "free_result", "read_output"]

Json = dict[str, Any]
Converter = Callable[[Any], Json]


def read_output(annotation: Any, structured: bool | None) -> tuple[Converter, Json | None]:
    """How a tool's values become results, and its output schema.

    Args:
        annotation: the return annotation; `inspect.Signature.empty` without one.
        structured: True demands structured output, False forbids it, None decides by the annotation.

    Raises:
        TypeError: `structured=True` with an annotation that describes content or nothing.
    """
    if structured is False or _is_content(annotation):
        if structured:
            raise TypeError("structured=True needs a return annotation that says what the data is")
        return free_result, None
    pair = builtin_schema(annotation)
    if pair is not None:
        core: Any = pair[0]
        validate: Callable[[Any], Any] = SchemaValidator(core).validate_python
        schema = pair[1]
    else:
        from mcpfactory_runtime.server.schema import models  # noqa: PLC0415 - this is the lazy import of pydantic

        validate, schema = models.output_schema(annotation)
    if schema.get("type") == "object":
        return _object_converter(validate), schema
    return _wrapping_converter(validate), _wrapped(schema)


def free_result(value: Any) -> Json:
    """Return a result without a schema: content as it is, objects also as structured content, the rest as JSON text."""
    if isinstance(value, ToolResult):
        return value.to_dict()
    if value is None:
        return {"content": []}
    if isinstance(value, str | Content):
        return {"content": content_blocks(value)}
    if isinstance(value, list | tuple) and value and all(isinstance(item, str | Content) for item in value):
        return {"content": content_blocks(value)}
    text = {"type": "text", "text": to_json(value, inf_nan_mode="null", bytes_mode="base64").decode()}
    if isinstance(value, dict):
        return {"content": [text], "structuredContent": value}
    return {"content": [text]}


def _object_converter(plain: Callable[[Any], Any]) -> Converter:
    def convert(value: Any) -> Json:
        if isinstance(value, ToolResult):
            return value.to_dict()
        data = plain(value)
        return {
            "content": [{"type": "text", "text": to_json(data, inf_nan_mode="null").decode()}],
            "structuredContent": data,
        }

    return convert


def _wrapping_converter(plain: Callable[[Any], Any]) -> Converter:
    def convert(value: Any) -> Json:
        if isinstance(value, ToolResult):
            return value.to_dict()
        data = plain(value)
        text = data if type(data) is str else to_json(data, inf_nan_mode="null").decode()
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"result": data}}

    return convert


def _wrapped(schema: Json) -> Json:
    inner = dict(schema)
    definitions = inner.pop("$defs", None)
    wrapped: Json = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    if definitions:
        wrapped["$defs"] = definitions
    return wrapped


def _is_content(annotation: Any) -> bool:
    """Whether an annotation says nothing about data: none at all, None, Any, content blocks, a ToolResult."""
    if annotation in (inspect.Signature.empty, None, type(None), Any):
        return True
    if inspect.isclass(annotation) and get_origin(annotation) is None:
        return issubclass(annotation, Content | ToolResult)
    return any(_is_content(part) for part in get_args(annotation) if part not in (None, type(None), Any))
