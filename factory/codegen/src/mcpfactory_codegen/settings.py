"""Settings files: base class of their models, and errors with line, key and correction."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from mcpfactory_codegen.text import did_you_mean, strip_controls
from mcpfactory_runtime.errors import Exit, McpfactoryError
from mcpfactory_runtime.schemas.walk import children, items_schema_of, properties_of, resolve, subschemas_of, types_of

CONFIG: Final = "mcpfactory.toml"
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN: Final = 100  # maximum characters of a value in a message


class SettingsError(McpfactoryError):
    """Error for an invalid settings file, with the correction as hint."""

    exit_code = Exit.BAD_INPUT


class Settings(BaseModel):
    """A table of a settings file. Unknown keys, and values of the wrong type, are refused.

    Defaults that are models need `model_construct`, because building validators would slow down each start.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_by_name=True, defer_build=True)


Strings = Annotated[tuple[str, ...], Field(strict=False)]
"""A list of strings."""
Names = Annotated[tuple[Annotated[str, Field(pattern=r"\S")], ...], Field(strict=False)]
"""A list of strings that are not blank."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Annotation of a string that is one of `values`."""

    values: Collection[str]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema(list(self.values))


def validation_error(message: str, hint: str, *at: str | int) -> PydanticCustomError:
    """Return the error that a validator of a model raises, with the path `at` from the validated value to the error."""
    return PydanticCustomError("setting", "{message}", {"message": message, "hint": hint, "at": at})


_Model = TypeVar("_Model", bound=Settings)


def read_settings(model: type[_Model], text: str, file: Path | str) -> _Model:
    """Return the settings in the text of a TOML file, or raise a SettingsError about `file`."""
    return check_settings(model, parse_toml(text, file), file, text)


def parse_toml(text: str, file: Path | str) -> dict[str, Any]:
    """Return the content of a TOML text, or raise a SettingsError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} is not TOML: {error}", "correct that line") from None


def read_toml_text(file: Path) -> str:
    """Return the text of a TOML file, or raise a SettingsError."""
    try:
        return file.read_text("utf-8-sig")  # Windows editors may write a byte order mark
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not TOML: {error}", "save it as UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}", "make it readable") from error


def check_settings(model: type[_Model], data: Any, file: Path | str, text: str = "") -> _Model:
    """Return data as settings. Errors have a line number if `text` is the text of the file."""
    try:
        return model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        raise _settings_error(first, model, data, file, text) from None


def _settings_error(
    error: ErrorDetails, model: type[Settings], data: Any, file: Path | str, text: str
) -> SettingsError:
    keys, value = _place(error, data)
    line = f":{find_toml_line(text, (*keys, *error['loc'][-1:]))}" if text else ""
    key = ".".join(_names(keys))
    schema = model.model_json_schema()
    whole = next((keys[:end] for end in range(len(keys), 0, -1) if isinstance(keys[end - 1], str)), ())
    example = _example(".".join(_names(whole)), _schemas(schema, whole, data))
    message, hint = _explain(error, value, _schemas(schema, keys, data), example)
    return SettingsError(": ".join(part for part in (f"{file}{line}", key, message) if part), hint)


# --- locations of errors ---


Keys = tuple[str | int, ...]


def _place(error: ErrorDetails, data: Any) -> tuple[Keys, Any]:
    """Return the keys and the value to which an error refers.

    The result omits the branches of unions, which pydantic adds to the keys. An error about an unknown or missing key
    belongs to the table of the key.
    """
    keys: list[str | int] = []
    parts = error["loc"][:-1] if error["type"] == "extra_forbidden" else error["loc"]
    for part in (*parts, *error.get("ctx", {}).get("at", ())):
        if part in data if isinstance(data, Mapping) else isinstance(data, list) and part in range(len(data)):
            data = data[part]
            keys.append(part)
    return tuple(keys), data


def _names(keys: Keys) -> list[str]:
    """Return the keys in readable form, with tables of a list counted from 1."""
    names: list[str] = []
    for part in keys:
        if isinstance(part, int):
            names[-1] += f"[{part + 1}]"
        else:
            names.append(part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False))
    return names


def find_toml_line(text: str, keys: Keys) -> int:
    """Return the line of a key in a TOML text, or of the innermost table around a missing key."""
    best, line = 0, 1
    table: Keys = ()
    counts: dict[Keys, int] = {}
    for number, content in enumerate(map(str.strip, text.splitlines()), 1):
        names = _written_keys(content)
        if content.startswith("["):
            if content.startswith("[["):
                counts[names] = counts.get(names, -1) + 1
            table = ()
            for end, name in enumerate(names, 1):
                table = (*table, name, counts[names[:end]]) if names[:end] in counts else (*table, name)
        place = table if content.startswith("[") else (*table, *names)
        for one in (place[:-1], place):  # a list of tables has the line number of its first table
            if len(one) > best and one == keys[: len(one)]:
                best, line = len(one), number
    return line


def _written_keys(line: str) -> Keys:
    """Return the keys in a table header or before `=`, or () for any other line."""
    try:
        data: Any = tomllib.loads(line if line.startswith("[") else f"{line.partition('=')[0]}= 0")
    except tomllib.TOMLDecodeError:  # the line is a comment, or a further line of a value
        return ()
    keys: list[str | int] = []
    while data:
        if isinstance(data, list):
            data = data[0]
        else:
            key, data = next(iter(data.items()))
            keys.append(key)
    return tuple(keys)


# --- messages and hints, from the JSON Schema of the location ---


_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_NOUNS: Final = {
    "date": "a date",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a table",
}
_EXAMPLES: Final = {"string": "…", "integer": 1, "number": 1, "boolean": True}
_TYPES: Final = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}


def _explain(error: ErrorDetails, value: Any, places: Sequence[Mapping[str, Any]], example: str) -> tuple[str, str]:
    """Return the message and a hint, from the JSON Schemas `places` that permit the value."""
    last = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "setting":
        return error["msg"], str(error["ctx"]["hint"])
    if error["type"] == "extra_forbidden":
        known = list(dict.fromkeys(name for one in places for name in properties_of(one)))
        what = "fields" if len(error["loc"]) > 1 else "tables"
        return f"unknown field {last[:_SHOWN]!r}", did_you_mean(last, known, what)
    if error["type"] == "missing":
        return f"{last} is missing", _example(
            last, [properties_of(one)[last] for one in places if last in properties_of(one)]
        )
    types = {one.get("type") for one in places} - {None}
    if types and _TYPES.get(type(value)) not in types | ({"integer"} if "number" in types else set()):
        wanted = dict.fromkeys(_noun(one) for one in places)
        return f"must be {' or '.join(wanted)}", example
    choices = [
        one for place in places for one in place.get("enum", [place["const"]] if "const" in place else ()) if one
    ]
    if choices:
        return f"{_shown(value)} is not valid", did_you_mean(str(value), [str(one) for one in choices], "values")
    for one in places:
        if "maximum" in one:
            return f"{value} is not valid", f"use a number from {one.get('minimum', 'above 0')} to {one['maximum']}"
    return f"{_shown(value)} is not valid", example


def _shown(value: Any) -> str:
    text = _toml(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _noun(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return _toml(schema["const"])
    kind = "date" if schema.get("format") == "date" else str(schema.get("type"))
    if kind == "array":
        return "a list of strings" if types_of(items_schema_of(schema)) else "a list of tables"
    return _NOUNS.get(kind, "another value")


def _example(key: str, places: Sequence[Mapping[str, Any]]) -> str:
    name = key.rpartition(".")[2]
    for one in places:
        if one.get("type") == "object":
            return f"write [{key}]"
        if examples := one.get("examples"):
            return f"{name} = {examples[0] if one.get('format') == 'date' else _toml(examples[0])}"
    kinds = [one.get("type") for one in places]
    value = ["…"] if "array" in kinds else next((_EXAMPLES[kind] for kind in kinds if kind in _EXAMPLES), "…")
    return f"{name} = {_toml(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False, default=str)


def _schemas(root: Mapping[str, Any], keys: Keys, data: Any) -> list[Mapping[str, Any]]:
    """Return the JSON Schemas of the value at these keys, one for each possible type."""
    found = list(schema_alternatives(root, root, data))
    for key in keys:
        data = data[key]
        below = [
            items_schema_of(one)
            if isinstance(key, int)
            else properties_of(one).get(key) or additional_properties_schema(one)
            for one in found
        ]
        found = [branch for one in below if isinstance(one, Mapping) for branch in schema_alternatives(one, root, data)]
    return found


def additional_properties_schema(schema: Mapping[str, Any]) -> Any:
    """Return the schema of values under keys that the user chooses, or None for fixed keys."""
    named = (part for steps, part in children(schema) if steps[0] in {"patternProperties", "additionalProperties"})
    return next((part for part in named if isinstance(part, Mapping)), None)


def schema_alternatives(
    schema: Mapping[str, Any], root: Mapping[str, Any], data: Any = None
) -> Iterator[Mapping[str, Any]]:
    """Yield the resolved alternatives of a schema, except alternatives whose constants differ from the data."""
    schema = resolve(schema, root)
    if options := subschemas_of(schema, "anyOf", "oneOf"):
        about = {key: value for key, value in schema.items() if key in {"examples", "description"}}
        for one in options:
            yield from schema_alternatives({**about, **one}, root, data)
        return
    constants = {name: one["const"] for name, one in properties_of(schema).items() if isinstance(one.get("const"), str)}
    if not isinstance(data, Mapping) or all(data.get(name) in (None, value) for name, value in constants.items()):
        yield schema


def json_schema(*models: type[Settings]) -> dict[str, Any]:
    """Return the JSON Schema of a settings file that follows one of these models."""
    if len(models) == 1:
        return {"$schema": _DIALECT, **models[0].model_json_schema()}
    from pydantic.json_schema import models_json_schema  # noqa: PLC0415 - only `mcpfactory schema` needs this import

    places, schema = models_json_schema([(model, "validation") for model in models], title="mcpfactory.toml")
    return {"$schema": _DIALECT, **schema, "anyOf": [places[model, "validation"] for model in models]}


# --- TOML text ---


def quoted(text: str) -> str:
    """Return a string literal that is valid in both TOML and Python."""
    return json.dumps(strip_controls(text), ensure_ascii=False)


def to_toml(value: str | Sequence[str]) -> str:
    """Return a value as TOML."""
    return quoted(value) if isinstance(value, str) else f"[{', '.join(quoted(item) for item in value)}]"
