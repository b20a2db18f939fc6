"""Conversion of return values to tool results, and of return annotations to `outputSchema`.

Values that are not objects are wrapped as `{"result": …}`, because older revisions require an object as structured
content.
"""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from pydantic_core import PydanticSerializationError, SchemaValidator, to_json

from mcpfactory_runtime.protocol.jsonrpc import replace_surrogates
from mcpfactory_runtime.schemas.builtin_types import builtin_schema
from mcpfactory_runtime.server.results import Content, ToolResult, content_blocks
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.schemas.validation import ArgumentValidator

Converter = Callable[[Any], Json]

_OF_ANYTHING: Final = (list, list[Any], tuple, tuple[Any, ...], Sequence, Sequence[Any])


def make_output_converter(annotation: Any, structured: bool | None) -> tuple[Converter, Json | None]:
    """Return the function that converts a tool's return values to results, and the tool's output schema.

    `structured` is True to require structured output, and False to forbid structured output. If `structured` is None,
    the annotation decides.
    """
    if structured is False or _is_content(annotation):
        if structured:
            raise TypeError("structured=True needs a return annotation that describes the data")
        return unstructured_result, None
    if annotation in (bytes, bytearray):
        return _converter(_base64), _wrapped({"type": "string", "contentEncoding": "base64"})
    pair = builtin_schema(annotation)
    if pair is not None:
        core: Any = pair[0]
        validate: Callable[[Any], Any] = SchemaValidator(core).validate_python
        schema = pair[1]
    else:
        from mcpfactory_runtime.schemas import pydantic_schemas  # noqa: PLC0415 - this is the lazy import of pydantic

        validate, schema = pydantic_schemas.output_schema(annotation)
    if schema.get("type") == "object":
        return _converter(validate, wraps=False), schema
    convert = _converter(validate)
    return _mixed_converter(convert) if annotation in _OF_ANYTHING else convert, _wrapped(schema)


def unstructured_result(value: Any) -> Json:
    """Convert a value to a result without an output schema.

    Content blocks stay unchanged, bytes become base64, and other values become JSON text. Objects are also returned as
    structured content. In a list with content blocks, all other items become text blocks.
    """
    if isinstance(value, ToolResult):
        return _complete_result(value)
    if value is None:
        return {"content": []}
    if isinstance(value, str | Content):
        return {"content": content_blocks(value)}
    if isinstance(value, list | tuple) and value and _holds_content(value):
        return {"content": [block for item in value for block in unstructured_result(item)["content"]]}
    if isinstance(value, bytes | bytearray):
        return {"content": content_blocks(_base64(value))}
    text = {"type": "text", "text": _json_text(value)}
    if isinstance(value, dict):
        return {"content": [text], "structuredContent": value}
    return {"content": [text]}


def _holds_content(values: Sequence[Any]) -> bool:
    return all(isinstance(one, str) for one in values) or any(isinstance(one, Content) for one in values)


def _base64(value: bytes | bytearray) -> str:
    return b64encode(value).decode("ascii")


def check_structured_content(
    convert: Converter, schema: Mapping[str, Any], *, only_complete: bool = False
) -> Converter:
    """Return a converter that also checks structured content against an output schema (tools, §Output Schema).

    With `only_complete`, it checks only results that the tool made itself (`ToolResult`).

    Raises:
        TypeError: (when the converter is called) the structured content is missing, or does not match the schema.
    """
    validator: ArgumentValidator | None = None

    def checked(value: Any) -> Json:
        nonlocal validator
        result = convert(value)
        if result.get("isError") or (only_complete and not isinstance(value, ToolResult)):
            return result
        if "structuredContent" not in result:
            raise TypeError("the result has no structured content, which the tool's output schema describes")
        if validator is None:
            from mcpfactory_runtime.schemas.validation import compile_schema  # noqa: PLC0415 - only for such results

            validator = compile_schema(_wrapped(schema), lenient=False)  # any value, as in the newest revision
        try:
            validator.validate({"result": result["structuredContent"]})
        except ValueError as error:
            raise TypeError(f"the result does not match the tool's output schema: {error}") from None
        return result

    return checked


def _complete_result(value: ToolResult) -> Json:
    result = value.to_dict()
    if "structuredContent" in result:
        _json_text(result["structuredContent"])
    return result


def _json_text(value: Any) -> str:
    """Return JSON, and raise TypeError for values without JSON, such as NaN."""
    try:
        text = to_json(value, inf_nan_mode="constants", bytes_mode="base64").decode()
        # These words can also be in a string.
        if ("NaN" in text or "Infinity" in text) and text.encode() != to_json(
            value, inf_nan_mode="null", bytes_mode="base64"
        ):
            raise TypeError(
                "the result contains NaN or infinity, which JSON does not have\nhint: return None or a text"
            )
        return text
    except PydanticSerializationError as error:
        if (whole := replace_surrogates(value)) is not value:
            return _json_text(whole)
        raise TypeError(
            f"the returned {type(value).__name__} cannot be converted to JSON: {error}\nhint: return a dict, a dataclass, "
            "a pydantic model or text; annotate content blocks with their types, such as list[Image | str], "
            "or remove the annotation"
        ) from None


def _converter(plain: Callable[[Any], Any], *, wraps: bool = True) -> Converter:
    def convert(value: Any) -> Json:
        if isinstance(value, ToolResult):
            return _complete_result(value)
        try:
            data = plain(value)
        except ValueError as error:
            data = _plain_without_surrogates(plain, value, error)
        text = data if type(data) is str else _json_text(data)
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"result": data} if wraps else data}

    return convert


def _plain_without_surrogates(plain: Callable[[Any], Any], value: Any, error: ValueError) -> Any:
    """Convert a value whose strings contain lone surrogates to plain data."""
    whole = replace_surrogates(value)
    if whole is value:
        raise error
    return plain(whole)


def _mixed_converter(convert: Converter) -> Converter:
    """Return a converter for lists that may contain content blocks."""

    def convert_mixed(value: Any) -> Json:
        if isinstance(value, list | tuple) and any(isinstance(one, Content) for one in value):
            data = [one for one in value if not isinstance(one, Content)]
            return {**unstructured_result(value), "structuredContent": convert(data)["structuredContent"]}
        return convert(value)

    return convert_mixed


def _wrapped(schema: Mapping[str, Any]) -> Json:
    inner = dict(schema)
    definitions = inner.pop("$defs", None)
    wrapped: Json = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    if definitions:
        wrapped["$defs"] = definitions
    return wrapped


def _is_content(annotation: Any) -> bool:
    """Return True if an annotation is missing or does not describe data, such as None, Any or a content block."""
    if annotation in (inspect.Signature.empty, None, type(None), Any):
        return True
    if inspect.isclass(annotation) and get_origin(annotation) is None:
        return issubclass(annotation, Content | ToolResult)
    return any(_is_content(part) for part in get_args(annotation) if part not in (None, type(None), Any))
