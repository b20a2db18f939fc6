"""What a person decided about tools in `[tools.<name>]` of a server's `mcpfactory.toml`: the records, and their reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from mcpfactory_codegen.read.records import first_wrong

__all__ = ["ArgumentCuration", "MergeCuration", "ToolCuration", "read_tools"]


def _finite(value: JsonValue) -> JsonValue:
    json.dumps(value, allow_nan=False)
    return value


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ArgumentCuration(_Record):
    """One argument. A `default` of None is none: TOML has no null. A hidden one is always sent with its default.

    `fix` is both in one: the value that is always sent, and nothing to be seen of the argument.
    """

    rename: str = ""
    description: str = ""
    default: Annotated[JsonValue, AfterValidator(_finite)] = None
    hide: bool = False
    fix: Annotated[JsonValue, AfterValidator(_finite)] = None


class MergeCuration(_Record):
    """Several arguments that become one. `separator`: its text is cut there, a piece for each; "": each has all of it."""

    arguments: Annotated[list[str], Field(min_length=2, max_length=10)]
    separator: Annotated[str, Field(max_length=10)] = ""
    description: str = ""


class ToolCuration(_Record):
    """One tool; "" leaves a text as the API has it."""

    rename: str = ""
    title: str = ""
    description: str = ""
    hide: bool = False
    arguments: Mapping[str, ArgumentCuration] = Field(default_factory=dict)
    merge: Mapping[str, MergeCuration] = Field(default_factory=dict)


_TOOLS: Final = TypeAdapter(dict[str, ToolCuration])


def read_tools(table: Mapping[str, Any]) -> dict[str, ToolCuration]:
    """Return the table `[tools]`, by the names that the tools have without it.

    Raises:
        ValueError: an unknown key or a value of the wrong type; the text says where.
    """
    try:
        return _TOOLS.validate_python(dict(table))
    except ValidationError as error:
        raise ValueError(first_wrong(error, "tools", ToolCuration, ArgumentCuration, MergeCuration)) from None
