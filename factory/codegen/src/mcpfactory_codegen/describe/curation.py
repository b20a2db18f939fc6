"""Records of `[tools.<name>]` and `[responses]` in a server's `mcpfactory.toml`, and their readers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from mcpfactory_codegen.describe.schemas import OUTPUT_TOKENS, OutputMode
from mcpfactory_codegen.text import nearest
from mcpfactory_runtime.upstream.secrets import MAX_TEXT

_T = TypeVar("_T")


def _finite(value: JsonValue) -> JsonValue:
    json.dumps(value, allow_nan=False)
    return value


FiniteJson = Annotated[JsonValue, AfterValidator(_finite)]
"""A JSON value: no NaN, no infinity."""


class ConfigRecord(BaseModel):
    """A table of a person's `mcpfactory.toml`: unknown fields and values of other types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ArgumentCuration(ConfigRecord):
    """Curation of one argument.

    A `default` of None is unset, because TOML has no null. A hidden argument is always sent with its default. `fix`
    combines both: the value is always sent and the argument is hidden.
    """

    rename: str = ""
    description: str = ""
    default: FiniteJson = None
    hide: bool = False
    fix: FiniteJson = None


class MergeCuration(ConfigRecord):
    """Several arguments that become one. `separator`: its text is cut there, a piece for each; "": each has all of it."""

    arguments: Annotated[list[str], Field(min_length=2, max_length=10)]
    separator: Annotated[str, Field(max_length=10)] = ""
    description: str = ""


class ToolCuration(ConfigRecord):
    """One tool; "" leaves a text as the API has it."""

    rename: str = ""
    title: str = ""
    description: str = ""
    hide: bool = False
    arguments: Mapping[str, ArgumentCuration] = Field(default_factory=dict)
    merge: Mapping[str, MergeCuration] = Field(default_factory=dict)


def read_table(adapter: TypeAdapter[_T], table: Mapping[str, Any], name: str, *models: type[BaseModel]) -> _T:
    """Return the table `[name]` of the user's `mcpfactory.toml`, validated against these models.

    Raises:
        ValueError: unknown key or value of the wrong type; the message names the place.
    """
    try:
        return adapter.validate_python(dict(table))
    except ValidationError as error:
        raise ValueError(_first_wrong(error, name, *models)) from None


_TOOLS: Final = TypeAdapter(dict[str, ToolCuration])


def read_tools(table: Mapping[str, Any]) -> dict[str, ToolCuration]:
    """Return the table `[tools]`, by the names that the tools have without it; errors as `read_table`."""
    return read_table(_TOOLS, table, "tools", ToolCuration, ArgumentCuration, MergeCuration)


# --- What a person decided about answers in `[responses]` of a server's `mcpfactory.toml`: the record, and its reader ---


class ResponseOptions(ConfigRecord):
    """`output` and `output_tokens` are those of `outputs.Outputs`; `select` gives tools an argument for JMESPath.

    `max_text`: characters of one answer that a model is given.
    """

    output: OutputMode = "loose"
    output_tokens: int = Field(default=OUTPUT_TOKENS, ge=1, le=1_000_000)
    select: bool = False
    max_text: int = Field(default=MAX_TEXT, ge=1_000, le=10_000_000)


_RESPONSES: Final = TypeAdapter(ResponseOptions)


def read_responses(table: Mapping[str, Any]) -> ResponseOptions:
    """Return the table `[responses]`; errors as `read_table`."""
    return read_table(_RESPONSES, table, "responses", ResponseOptions)


# --- what pydantic says about a person's table, as one sentence ---


def _first_wrong(error: ValidationError, table: str, *models: type[BaseModel]) -> str:
    """Return the first thing that is wrong in `[table]`, whose records are these models."""
    first = error.errors(include_url=False)[0]
    where = ".".join([table, *map(str, first["loc"])])
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg']}"
    close = nearest(str(first["loc"][-1]), [name for model in models for name in model.model_fields])
    return f"{where}: nothing reads this field" + (f"; did you mean {close!r}?" if close else "")
