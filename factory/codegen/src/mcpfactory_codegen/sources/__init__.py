"""Kinds of API documents, and their translation to OpenAPI. Pure.

Each translation records the origin of its parts, so that problems point into the original document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_codegen.sources.google_discovery import is_google_discovery, translate_google_discovery
from mcpfactory_codegen.sources.graphql import (
    SDL,
    SDL_TEXT,
    is_introspection,
    is_sdl,
    translate_introspection,
    translate_sdl,
)
from mcpfactory_codegen.sources.postman import is_postman, translate_postman
from mcpfactory_codegen.sources.postman_secrets import strip_secrets
from mcpfactory_codegen.sources.translation_helpers import Translation


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of document.

    `file` is the stem of the document's file name in a server's directory. `counted` is the noun for the operations in
    a document of this kind. `translate` converts a document to OpenAPI, if necessary. `stored` returns the part of a
    document to store, if not the whole document. For formats other than JSON and YAML, `text` has a pattern for the
    bytes and the data key for the text.
    """

    name: str
    noun: str
    counted: str
    file: str
    recognises: Callable[[dict[str, Any]], bool]
    translate: Callable[[dict[str, Any]], Translation] | None = None
    stored: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    text: tuple[re.Pattern[bytes], str] | None = None


SOURCES: Final = (
    DocumentKind("openapi", "an OpenAPI document", "operations", "openapi", lambda data: "openapi" in data or "swagger" in data),
    DocumentKind("discovery", "a Google discovery document", "methods", "discovery", is_google_discovery, translate_google_discovery),
    DocumentKind(
        "introspection", "the introspection of a GraphQL API", "fields", "introspection",
        is_introspection, translate_introspection,
    ),
    DocumentKind("graphql", "a GraphQL schema", "fields", "schema", is_sdl, translate_sdl, text=(SDL_TEXT, SDL)),
    DocumentKind("postman", "a Postman collection", "requests", "collection", is_postman, translate_postman, strip_secrets),
)  # fmt: skip
"""All kinds of documents. The first kind that recognizes a document is used."""


_KEY: Final = r"(?:^|[{,\n])\s*[\"']?%s[\"']?\s*:\s*[\"']?\d"
_UNSUPPORTED: Final = {
    "an AsyncAPI document": re.compile((_KEY % "asyncapi").encode()),
    "an OpenRPC document": re.compile((_KEY % "openrpc").encode()),
    "an HTML page": re.compile(rb"\A\s*<(?:!doctype\s+)?html\b", re.IGNORECASE),
    "a RAML document": re.compile(rb"\A\s*#%RAML"),
    "a WSDL document": re.compile(rb"://(?:schemas\.xmlsoap\.org/wsdl|www\.w3\.org/ns/wsdl)"),
}


def unsupported_kind(raw: bytes) -> str:
    """Return the kind of a document that no `DocumentKind` recognizes, or ""."""
    return next((noun for noun, pattern in _UNSUPPORTED.items() if pattern.search(raw)), "")


def recognize_document_kind(data: Any) -> DocumentKind | None:
    """Return the kind of a document, or None for an unknown kind."""
    if not isinstance(data, dict):
        return None
    return next((source for source in SOURCES if source.recognises(data)), None)


def text_document_key(raw: bytes) -> str:
    """Return the data key for the text of a document that is neither JSON nor YAML, else ""."""
    texts = [source.text for source in SOURCES if source.text is not None]
    data = raw.lstrip()[:1] in {b"{", b"["}
    return "" if data else next((member for pattern, member in texts if pattern.search(raw)), "")
