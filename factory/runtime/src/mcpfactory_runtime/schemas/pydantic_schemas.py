"""Argument and output schemas that need pydantic: models, dataclasses, TypedDicts, dates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired, get_args, get_origin

from pydantic import ConfigDict, PydanticUserError, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, PydanticUndefined, SchemaValidator
from typing_extensions import TypedDict

from mcpfactory_runtime.schemas.walk import properties_of, resolve_definition
from mcpfactory_runtime.types import Json


class _Plain(GenerateJsonSchema):
    """Generator of JSON Schema without titles, which would repeat the names and cost tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate(self, schema: Any, mode: Any = "validation") -> Json:
        result = super().generate(schema, mode)
        for definition in (result, *result.get("$defs", {}).values()):
            definition.pop("title", None)
        return result


def pydantic_field_default(default: Any) -> tuple[bool, Callable[[], Any] | None]:
    """Return True if `default` is pydantic's `Field(...)`, and the function that creates the default value, if any."""
    if not isinstance(default, FieldInfo):
        return False, None
    if default.is_required():
        return True, None
    return True, lambda: default.get_default(call_default_factory=True, validated_data={})


def arguments_schema(parameters: Mapping[str, tuple[Any, Any, bool]]) -> tuple[Any, Json]:
    """Return a validator and the JSON Schema for the arguments of a function.

    `parameters` maps a name to (annotation, default in the signature, required). An unsupported annotation raises
    TypeError.
    """
    fields: Json = {}
    for name, (annotation, default, required) in parameters.items():
        kind = annotation
        if isinstance(default, FieldInfo):
            kind = Annotated[annotation, _without_default(default)]
        fields[name] = kind if required else NotRequired[kind]
    arguments = TypedDict("arguments", fields)  # type: ignore[misc]  # the functional form, with names known at run time
    arguments.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]  # pydantic's documented place
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(arguments)
        schema = adapter.json_schema(schema_generator=_Plain)
    except PydanticUserError as error:
        raise TypeError(f"{_unknown(fields)}{error}") from error
    for name, (_, default, required) in parameters.items():
        if isinstance(default, FieldInfo) and not required and default.default is not PydanticUndefined:
            schema["properties"][name].setdefault("default", default.default)
    return SchemaValidator(adapter.core_schema), schema


def _unknown(fields: Json) -> str:
    for name, annotation in fields.items():
        origin: Any = get_origin(annotation)
        try:
            TypeAdapter(get_args(annotation)[0] if origin is NotRequired else annotation)
        except PydanticUserError:
            return f"{name}: "
    return ""


def output_schema(annotation: Any) -> tuple[Callable[[Any], Any], Json]:
    """Return a function that converts a value to validated JSON data, and the JSON Schema of the data."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        schema = adapter.json_schema(mode="serialization", schema_generator=_Plain)
        # Pydantic describes a recursive type by a reference.
        schema = resolve_definition(schema, schema.get("$defs", {}))
    except PydanticUserError as error:
        raise TypeError(
            f"cannot derive an output schema from the return annotation: {error}\nhint: set structured=False to return the value without an output schema"
        ) from error

    def plain(value: Any) -> Any:
        try:
            return adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True)
        except PydanticSerializationError as error:
            raise TypeError(
                f"the returned value cannot be converted to JSON: {error}\nhint: annotate content blocks with their "
                "types, such as list[Image | str], or remove the annotation"
            ) from None

    return plain, schema


def model_schema(model: type) -> tuple[Callable[[Any], Any], Json]:
    """Return a function that creates an instance from JSON data, and the JSON Schema of the data without `$ref`."""
    adapter: TypeAdapter[Any] = TypeAdapter(model)
    schema = adapter.json_schema(schema_generator=_Plain)
    definitions = schema.pop("$defs", {})
    properties = {name: resolve_definition(value, definitions) for name, value in properties_of(schema).items()}
    return adapter.validate_python, {**schema, "properties": properties}


def _without_default(field: FieldInfo) -> FieldInfo:
    bare = FieldInfo.merge_field_infos(field)
    bare.default = PydanticUndefined
    bare.default_factory = None
    return bare
