"""What the tests of sources share: documents of other kinds from data, read as a user would, from their path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcpfactory_codegen.ir import Api, ApiOperation
from mcpfactory_codegen.openapi import read_source
from mcpfactory_codegen.read.document import load
from tests.codegen.reading.support import checked


class SourceReader:
    """Writes a document below a temporary folder and reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, content: Any, name: str = "document") -> Path:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def api(self, content: Any) -> Api:
        return checked(read_source(load(self.write(content))))


def named(api: Api, operation_id: str) -> ApiOperation:
    """The one operation with this id."""
    (found,) = [one for one in api.operations if one.operation_id == operation_id]
    return found


def parameters(operation: ApiOperation) -> dict[str, tuple[str, bool]]:
    """Where each parameter travels, and whether it is required."""
    return {one.name: (one.place, one.required) for one in operation.parameters}
