"""Settings of tools, arguments, responses, credentials and workflows in a server's `mcpfactory.toml`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from mcpfactory_codegen.settings import Settings, Strings
from mcpfactory_runtime.server.results import MAX_TEXT

OutputMode = Literal["declared", "loose", "none"]
OUTPUT_TOKENS: Final = 200
_MOST_STEPS: Final = 20


def _finite(value: JsonValue) -> JsonValue:
    json.dumps(value, allow_nan=False)
    return value


FiniteJson = Annotated[JsonValue, AfterValidator(_finite)]
"""A JSON value except NaN and infinity."""


class Selection(BaseModel):
    """The operations to include.

    An operation is included if it matches at least one of tags, paths and operations. The selected methods narrow the
    result further. An empty selection includes all operations. Operations that the document excludes with `x-mcp`
    extensions stay excluded, unless `include_operations` names them.

    The fields are options of `mcpfactory new`, arguments of the agents' tool, and keys of `[api]` and
    `[profiles.<name>]`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    include_tags: tuple[str, ...] = Field(
        default=(), description="Include only operations with this tag (repeatable)", examples=[["orders"]]
    )
    include_paths: tuple[str, ...] = Field(
        default=(),
        description="Include only paths that match: * within a segment, ** across segments (repeatable)",
        examples=[["/orders/**"]],
    )
    include_operations: tuple[str, ...] = Field(
        default=(),
        description="Include only this operationId or 'GET /path' (repeatable)",
        examples=[["listOrders", "GET /orders/{id}"]],
    )
    include_methods: tuple[str, ...] = Field(
        default=(),
        description="Narrow the included operations to this method (repeatable)",
        examples=[["GET"]],
    )


class CredentialOptions(Settings):
    """Names of parameters that are always or never credentials, regardless of the rules."""

    parameters: Strings = Field(default=(), description="further parameters that are credentials", examples=[["wskey"]])
    arguments: Strings = Field(default=(), description="parameters that are never credentials", examples=[["key"]])


class ArgumentCuration(Settings):
    """Curation of one argument. A `default` of None means unset, because TOML has no null."""

    rename: str = Field(default="", description="new name: a Python identifier of at most 64 characters")
    description: str = Field(default="", description="new text for the model")
    default: FiniteJson = Field(
        default=None,
        description="value to send if the argument is omitted; shown in the schema, and the argument becomes optional",
    )
    hide: bool = Field(
        default=False, description="hide the argument: its default is always sent; a required one needs a default"
    )
    fix: FiniteJson = Field(default=None, description="value that is always sent; hides the argument")


class ArgumentMergeCuration(Settings):
    """Several arguments that are merged into one argument."""

    arguments: Strings = Field(min_length=2, max_length=10, description="the two to ten arguments to replace")
    separator: str = Field(
        default="",
        max_length=10,
        description="splits the text into one typed piece per argument [default: each argument gets the whole text]",
    )
    description: str = Field(default="", description="text for the model")


class ToolCuration(Settings):
    """Curation of one tool, by its original name."""

    rename: str = Field(
        default="", description="new name: 1 to 64 of [A-Za-z0-9_-], unique; the Python function keeps its name"
    )
    title: str = Field(default="", description="new title")
    description: str = Field(default="", description="new text for the model")
    hide: bool = Field(default=False, description="remove the tool, and list its operation under `skipped`")
    arguments: Mapping[str, ArgumentCuration] = Field(
        default={}, description="decisions about arguments, by original name"
    )
    merge: Mapping[str, ArgumentMergeCuration] = Field(
        default={}, description="new arguments, by name; each replaces several"
    )


class ResponseOptions(Settings):
    """Settings for the responses of all tools."""

    output: OutputMode = Field(default="loose", description="how strict output schemas are; `none`: no output schemas")
    output_tokens: int = Field(default=OUTPUT_TOKENS, ge=1, le=1_000_000, description="limit for one output schema")
    select: bool = Field(default=False, description="tools get an argument for JMESPath, and no output schema")
    max_text: int = Field(
        default=MAX_TEXT, ge=1_000, le=10_000_000, description="characters of one answer that a model receives"
    )


class StepConfig(Settings):
    """One call of a workflow."""

    id: str = Field(description="name of the answer", examples=["found"])
    tool: str = Field(description="name of a listed tool", examples=["list_books"])
    arguments: Mapping[str, FiniteJson] = Field(default={}, description="its arguments; text after $ is a JSONPath")


class WorkflowConfig(Settings):
    """A tool that calls several tools."""

    description: str = Field(min_length=1, max_length=1024, description="text for the model")
    title: str = Field(default="", description="title of the tool")
    inputs: Mapping[str, dict[str, FiniteJson]] = Field(
        default={}, description="JSON Schemas of the arguments, by name"
    )
    optional: Strings = Field(default=(), description="inputs that can be omitted; those with a default always can")
    steps: Annotated[tuple[StepConfig, ...], Field(strict=False)] = Field(
        min_length=1, max_length=_MOST_STEPS, description="1 to 20 calls, in order"
    )
    result: FiniteJson = Field(default=None, description="the answer of the tool [default: that of the last step]")
