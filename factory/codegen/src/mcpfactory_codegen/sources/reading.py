"""Conversion of any supported kind of source document to the intermediate form."""

from __future__ import annotations

import json
from dataclasses import replace

from mcpfactory_codegen.ir import Api, Problems
from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import Document, Part
from mcpfactory_codegen.sources import Source, recognise
from mcpfactory_codegen.sources.translation import Translation


def read_source(document: Document) -> Api:
    """Read a document of any kind.

    Never raises for invalid content. Pointers of problems refer to the document itself.
    """
    translation = _translation(document)
    if translation is None:
        return read_api(document)
    raw = json.dumps(translation.data, ensure_ascii=False).encode("utf-8", "surrogatepass")
    part = Part(translation.data, raw)
    derived = Document(translation.data, raw, "json", document.source, document.main, {document.main: part})
    api = translation.moved(read_api(derived), document.data)
    if not document.problems:
        return api
    problems = Problems()
    problems.extend((*document.problems, *api.problems))
    return replace(api, problems=problems.all())


def _translation(document: Document) -> Translation | None:
    source = recognise(document.data)
    return source.translate(document.data) if source is not None and source.translate is not None else None


def kind_of(document: Document) -> Source:
    """Return the kind of a document."""
    source = recognise(document.data)
    assert source is not None, "load() refuses what is none of them"
    return source


def title_of(document: Document) -> str:
    """Return the title that the document gives its API; "" when it gives none."""
    translation = _translation(document)
    info = (document.data if translation is None else translation.data).get("info")
    return str(info.get("title", "")) if isinstance(info, dict) else ""
