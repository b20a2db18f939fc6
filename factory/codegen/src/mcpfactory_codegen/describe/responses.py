"""What a person decided about answers in `[responses]` of a server's `mcpfactory.toml`: the record, and its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcpfactory_codegen.describe.outputs import OUTPUT_TOKENS, OutputMode
from mcpfactory_codegen.read.records import first_wrong
from mcpfactory_runtime.upstream.response import MAX_TEXT

__all__ = ["ResponseOptions", "read_responses"]


class ResponseOptions(BaseModel):
    """`output` and `output_tokens` are those of `outputs.Outputs`; `select` gives tools an argument for JMESPath.

    `max_text`: characters of one answer that a model is given.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    output: OutputMode = "loose"
    output_tokens: int = Field(default=OUTPUT_TOKENS, ge=1, le=1_000_000)
    select: bool = False
    max_text: int = Field(default=MAX_TEXT, ge=1_000, le=10_000_000)


def read_responses(table: Mapping[str, Any]) -> ResponseOptions:
    """Return the table `[responses]`.

    Raises:
        ValueError: an unknown key or a value of the wrong type; the text says where.
    """
    try:
        return ResponseOptions.model_validate(dict(table))
    except ValidationError as error:
        raise ValueError(first_wrong(error, "responses", ResponseOptions)) from None
