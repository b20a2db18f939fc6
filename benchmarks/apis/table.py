"""The list of documents: `documents.tsv`, which `python -m benchmarks.apis --row` makes rows of."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import yaml

__all__ = ["DOCUMENTS", "Document", "described"]

METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"})


@dataclass(frozen=True)
class Document:
    """One API document in a package.

    Attributes:
        name: how the benchmarks call it.
        registry: the kind of package.
        package: its name.
        version: its version.
        path: the document's place in the package.
        sha256: of the document.
        openapi: the version of OpenAPI or Swagger that it says.
        operations: how many it has.
        kind: what it is an example of; `hostile`: no server can be made of it.
        set: `tuning` for those that may be looked at while something is mended, `apart` for those that judge it.
    """

    name: str
    registry: Literal["npm", "pypi"]
    package: str
    version: str
    path: str
    sha256: str
    openapi: str
    operations: int
    kind: str = "rest"
    set: Literal["tuning", "apart"] = "tuning"

    @property
    def file(self) -> str:
        """Its file name in the cache: another hash is another file."""
        return f"{self.name}-{self.sha256[:12]}{PurePosixPath(self.path).suffix}"

    @property
    def row(self) -> str:
        """Its line in the list."""
        return "\t".join(str(getattr(self, field.name)) for field in fields(self))


def described(content: bytes) -> tuple[str, int]:
    """The version that a document says, and how many operations its paths have."""
    json_text = content.lstrip().startswith(b"{")
    data: Any = json.loads(content) if json_text else yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    items = [item for item in (data.get("paths") or {}).values() if isinstance(item, dict)]
    return str(data.get("openapi") or data["swagger"]), sum(len(METHODS & item.keys()) for item in items)


def _read() -> dict[str, Document]:
    with Path(__file__).with_name("documents.tsv").open(encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file, delimiter="\t"))
    return {row["name"]: Document(**{**row, "operations": int(row["operations"])}) for row in rows}


DOCUMENTS = _read()
