"""Helpers of the source tests: documents of other kinds, written from data and read from their path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcpfactory_codegen.ir import Api, ApiOperation
from mcpfactory_codegen.openapi import read_source
from mcpfactory_codegen.read.document import load
from tests.codegen.reading.support import checked


class SourceReader:
    """Reader that writes a document to a temporary folder and reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, content: Any, name: str = "document") -> Path:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def api(self, content: Any) -> Api:
        return checked(read_source(load(self.write(content))))


def named(api: Api, operation_id: str) -> ApiOperation:
    """Return the operation with this ID."""
    (found,) = [one for one in api.operations if one.operation_id == operation_id]
    return found


def parameters(operation: ApiOperation) -> dict[str, tuple[str, bool]]:
    """Return the place of each parameter, and True if it is required."""
    return {one.name: (one.place, one.required) for one in operation.parameters}
