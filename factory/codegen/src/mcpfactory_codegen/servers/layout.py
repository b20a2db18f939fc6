"""Layout of an API document's files in a server's directory: below `api/`, under their original names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from mcpfactory_codegen.read.document import Document, DocumentError, load
from mcpfactory_codegen.servers import tree
from mcpfactory_codegen.sources.reading import kind_of


@dataclass(frozen=True, slots=True)
class DocumentFiles:
    """The files by path below the server's folder, and which of them is the document itself."""

    main: str
    files: dict[str, bytes]


def document_files(document: Document, label: str = "") -> DocumentFiles:
    """One file becomes `api/openapi.yaml` or `.json`, of another kind `api/<kind>.<format>`; several keep their places relative to each other.

    The files of a document with a label are below `api/<label>/`.

    Raises:
        DocumentError: the files come from several hosts, so that their references cannot be kept in a folder.
    """
    folder = f"api/{label}" if label else "api"
    if len(document.parts) <= 1:
        main = f"{folder}/{kind_of(document).file}.{document.format}"
        return DocumentFiles(main, {main: document.raw})
    paths = {key: _relative(key) for key in document.parts}
    if len({host for host, _ in paths.values()}) > 1:
        raise DocumentError("the document is spread over several hosts", "bundle it into one file first")
    common = _common([PurePosixPath(path) for _, path in paths.values()])
    targets = {key: f"{folder}/{PurePosixPath(path).relative_to(common)}" for key, (_, path) in paths.items()}
    return DocumentFiles(targets[document.main], {targets[key]: part.raw for key, part in document.parts.items()})


def as_kept(document: Document, layout: DocumentFiles) -> Document:
    """Return the document as it will be read from the server's folder, so that making it now and making it again give the same.

    Files of a document are called by their URLs where it is fetched and by their places where it is kept; a document in one
    file that refers to no other is called nothing, and not read twice.

    Raises:
        TreeError: a file would lie outside the server's folder.
    """
    if len(document.parts) <= 1 and not document.refused:
        return document
    with TemporaryDirectory(prefix="mcpfactory-document-") as folder:
        for target, content in layout.files.items():
            file = tree.locate(Path(folder), target)  # a file's address may have `..` in disguise
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        first = PurePosixPath(layout.main).parts[0]
        return replace(load(Path(folder, layout.main), root=Path(folder, first)), source=document.source)


def _relative(key: str) -> tuple[str, str]:
    """Return a part's host ("" for a local file) and its path."""
    if key.startswith(("http://", "https://")):
        url = urlsplit(key)
        return url.netloc, unquote(url.path).lstrip("/")
    return "", key


def _common(paths: list[PurePosixPath]) -> PurePosixPath:
    """Return the deepest folder that holds them all."""
    common = list(paths[0].parent.parts)
    for path in paths[1:]:
        parts = path.parent.parts
        same = 0
        while same < min(len(common), len(parts)) and common[same] == parts[same]:
            same += 1
        common = common[:same]
    return PurePosixPath(*common)
