"""The API documents of a server: tables in mcpfactory.toml, labels, files, URLs, and their combination to one API."""

from __future__ import annotations

import posixpath
import re
import socket
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from mcpfactory_codegen.combine import add_label, combine, duplicate_security_schemes
from mcpfactory_codegen.credential_parameters import NO_OPTIONS, convert_credential_parameters
from mcpfactory_codegen.curation import CredentialOptions, Selection
from mcpfactory_codegen.ir import Api, Problem, split_label
from mcpfactory_codegen.openapi import document_kind, read_source
from mcpfactory_codegen.read.document import Document, DocumentError, load
from mcpfactory_codegen.read.line_numbers import add_line_numbers
from mcpfactory_codegen.read.overlay import Overlay, apply_overlays, load_overlay
from mcpfactory_codegen.select import select
from mcpfactory_codegen.servers import server_files
from mcpfactory_codegen.servers.config import LABEL, SHARED_CREDENTIALS, ApiConfig, ServerConfig, render_apis
from mcpfactory_codegen.settings import CONFIG, SettingsError, to_toml
from mcpfactory_codegen.text import VERSION, strip_controls, words
from mcpfactory_runtime.urls import host_port_of, is_public, private_target_kind

_HEADER: Final = re.compile(r"^\[(\[)?[ \t]*api[ \t]*\](?(1)\])[^\n]*\n?", re.M)
_NEXT_TABLE: Final = re.compile(r"^\[", re.M)


# --- updates of the tables in mcpfactory.toml ---


def replace_api_tables(text: str, apis: Sequence[ApiConfig]) -> str:
    """Update the documents in a configuration text, with their files, sources and private hosts.

    A second document changes `[api]` to `[[api]]`. Raise a SettingsError if two values share a line.
    """
    written_now = _apis_of(text)
    if not any(_is_missing(written_now, api) for api in apis):
        return text
    tables = list(_HEADER.finditer(text))
    if len(tables) == len(written_now):
        for match in reversed(tables):  # reverse order keeps the offsets of earlier tables valid
            text = _edited(text, match, written_now[tables.index(match)], apis)
        known = {one.get("label", "") for one in written_now}
        added = [api for api in apis if api.label not in known]
        text = _appended(text, added)
    _check(text, apis)
    return text


def _is_missing(tables: Sequence[Mapping[str, Any]], api: ApiConfig) -> bool:
    now = next((one for one in tables if one.get("label", "") == api.label), None)
    return now is None or bool(_changed(now, api))


def _changed(now: Mapping[str, Any], api: ApiConfig) -> dict[str, str | list[str]]:
    expected: dict[str, str | list[str]] = {
        "document": api.document, "source": api.source, "allow_private": list(api.allow_private),
    }  # fmt: skip
    return {key: value for key, value in expected.items() if now.get(key, type(value)()) != value}


def _edited(text: str, header: re.Match[str], now: Mapping[str, Any], apis: Sequence[ApiConfig]) -> str:
    api = next((one for one in apis if one.label == now.get("label", "")), None)
    start = header.end()
    following = _NEXT_TABLE.search(text, start)
    end = following.start() if following else len(text)
    table = text[start:end]
    for key, value in _changed(now, api).items() if api is not None else ():
        line = f"{key} = {to_toml(value)}\n"
        found = re.search(rf"^{key}[ \t]*=[^\n]*\n?", table, re.M)
        table = table[: found.start()] + line + table[found.end() :] if found else line + table
    opening = header[0]
    if len(apis) > 1 and not header[1]:
        opening = re.sub(r"\[([^\]]*)\]", r"[[\1]]", opening, count=1)
    return text[: header.start()] + opening + table + text[end:]


def _appended(text: str, added: Sequence[ApiConfig]) -> str:
    if not added:
        return text
    last = list(_HEADER.finditer(text))[-1]
    following = _NEXT_TABLE.search(text, last.end())
    place = following.start() if following else len(text)
    block = "\n".join(render_apis(added)).strip("\n")
    before, after = text[:place].rstrip("\n"), text[place:]
    return f"{before}\n\n{block}\n" + (f"\n{after}" if after else "")


def _check(text: str, apis: Sequence[ApiConfig]) -> None:
    try:
        tables = _apis_of(text)
    except tomllib.TOMLDecodeError:
        tables = []
    for api in apis:
        if _is_missing(tables, api):
            where = f'the [[api]] with label = "{api.label}"' if api.label else "[api]"
            lines = " and ".join(f"{key} = {to_toml(value)}" for key, value in _changed({}, api).items())
            raise SettingsError(f"{CONFIG}: {where} could not be updated", f"write {lines} below [api]")


def _apis_of(text: str) -> list[dict[str, Any]]:
    found = tomllib.loads(text).get("api", [])
    return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)]


# --- documents that the user gives ---


_LABELLED: Final = re.compile(r"([a-z][a-z0-9-]*)=(.+)\Z", re.DOTALL)
_SAYING_NOTHING: Final = frozenset(
    {"openapi", "swagger", "api", "apis", "spec", "index", "schema", "rest", "docs", "json", "yaml"}
)
_COMMON: Final = frozenset({"service", "services"})
_LONGEST: Final = 30


@dataclass(frozen=True, slots=True)
class ApiSource:
    """One document that the user gave, with its path or URL as `place`."""

    place: str
    label: str = ""


Sources = str | Path | Sequence[str | Path | ApiSource] | None
"""Document sources: paths or URLs, with labels for several sources (`messaging=twilio.yaml`)."""


def parse_api_sources(sources: Sources) -> tuple[ApiSource, ...]:
    """Return the documents that the user gave, without a label if the whole text is a file name."""
    every = [sources] if isinstance(sources, str | Path) else list(sources or ())
    return tuple(one if isinstance(one, ApiSource) else _source(str(one)) for one in every)


def _source(text: str) -> ApiSource:
    match = _LABELLED.match(text)
    if match is None or not LABEL.match(match[1]) or Path(text).is_file():
        return ApiSource(text)
    return ApiSource(match[2], match[1])


def choose_labels(documents: Sequence[tuple[ApiSource, str]]) -> tuple[str, ...]:
    """Return the given label of each document, or distinguishing words of its file name or title."""
    given = [source.label for source, _ in documents]
    telling = [list(_telling(source.place, title)) for source, title in documents]
    open_ = [index for index, label in enumerate(given) if not label]
    parts = _apart([telling[index] for index in open_])
    chosen = list(given)
    for index, own in zip(open_, parts, strict=True):
        while len("-".join(own)) > _LONGEST and len(own) > 1:
            own.pop()
        label = "-".join(own).lstrip("-0123456789")[:_LONGEST].strip("-") or "api"
        number, stem = 1, label
        while label in chosen:
            number += 1
            label = f"{stem[: _LONGEST - 4]}-{number}"
        chosen[index] = label
    return tuple(chosen)


def _telling(place: str, title: str) -> tuple[str, ...]:
    """Return the words of the file name, or of title, host or folder for a generic file name."""
    path = PurePosixPath(unquote(urlsplit(place).path) if "://" in place else place.replace("\\", "/"))
    stem = words(strip_controls(path.name).partition(".")[0])
    host = words(strip_controls(urlsplit(place).hostname or "")) if "://" in place else ()
    for found in (stem, words(strip_controls(title)), host, words(strip_controls(path.parent.name))):
        if set(found) - _SAYING_NOTHING and not all(VERSION.match(word) for word in found):
            return tuple(word for word in found if word not in _SAYING_NOTHING)
    return ("api",)


def _apart(every: Sequence[Sequence[str]]) -> list[list[str]]:
    """Remove versions and common first or last words, as long as the lists stay distinct."""
    rest = [list(parts) for parts in every]
    for end in (0, -1):
        while len(rest) > 1 and all(len(parts) > 1 for parts in rest) and len({parts[end] for parts in rest}) == 1:
            rest = [parts[1:] if end == 0 else parts[:-1] for parts in rest]
    rest = _without(rest, lambda word: word in _COMMON)
    return _without(rest, lambda word: VERSION.match(word) is not None)


def _without(every: list[list[str]], dropped: Callable[[str], bool]) -> list[list[str]]:
    """Remove the `dropped` words from each list, except from lists that would become empty or equal to another list."""
    plain = [[word for word in parts if not dropped(word)] for parts in every]
    counts = Counter(map(tuple, plain))
    return [short if short and counts[tuple(short)] == 1 else parts for short, parts in zip(plain, every, strict=True)]


# --- the combined API ---


@dataclass(frozen=True, slots=True)
class CombinedApi:
    """The documents of a server as one API.

    `alike` has the names of security schemes that are equal in several documents, but have separate credentials.
    """

    api: Api
    operations: Mapping[str, int]
    bases: Mapping[str, str]
    alike: tuple[str, ...] = ()


def read_combined_api(
    apis: Sequence[ApiConfig], documents: Mapping[str, Document], credentials: CredentialOptions = NO_OPTIONS
) -> CombinedApi:
    """Return the selected operations of the documents without credential parameters."""
    read = {one.label: convert_credential_parameters(read_source(documents[one.label]), credentials) for one in apis}
    read = {label: add_label(api, label) for label, api in read.items()}
    chosen = {one.label: select(read[one.label], one) for one in apis}
    if len(apis) > 1:
        chosen = _without_matched(apis, chosen)
    shared = [one.label for one in apis if one.credentials == SHARED_CREDENTIALS]
    return CombinedApi(
        api=combine(chosen, shared),
        operations={label: len(api.operations) + len(api.skipped) for label, api in read.items()},
        alike=duplicate_security_schemes(chosen, shared) if len(apis) > 1 else (),
        bases={label: api.base_url for label, api in read.items()},
    )


def _without_matched(apis: Sequence[ApiConfig], chosen: Mapping[str, Api]) -> dict[str, Api]:
    """Return the APIs without problems about selection terms that match in another document."""
    unmatched = {
        label: {one.pointer: one for one in api.problems if one.code == "selection-unmatched"}
        for label, api in chosen.items()
    }
    asked = Counter(pointer for one in apis for pointer in _pointers(one))
    missed = Counter(pointer for found in unmatched.values() for pointer in found)
    done = {}
    for label, api in chosen.items():
        problems = []
        for one in api.problems:
            if one.code != "selection-unmatched":
                problems.append(one)
            elif missed[one.pointer] == asked[one.pointer]:
                problems.append(replace(one, pointer=f"{label}: {one.pointer}" if label else one.pointer))
        done[label] = replace(api, problems=tuple(problems))
    return done


def _pointers(api: ApiConfig) -> set[str]:
    """Return, for each selection term, the pointer that problems use, such as `include-tag=books`."""
    chosen = {name: getattr(api, name) for name in Selection.model_fields}
    chosen["include_methods"] = [one.upper() for one in api.include_methods]
    return {f"{name.removesuffix('s').replace('_', '-')}={term}" for name, terms in chosen.items() for term in terms}


def locate_problems(documents: Mapping[str, Document], problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the problems with their line numbers."""
    if set(documents) == {""}:
        return add_line_numbers(documents[""], problems)
    found = list(problems)
    for label, document in documents.items():
        split = {index: split_label(one.pointer) for index, one in enumerate(problems)}
        places = [index for index, (own, _) in split.items() if own == label]
        inside = [replace(problems[index], pointer=split[index][1]) if label else problems[index] for index in places]
        for index, one in zip(places, add_line_numbers(document, inside), strict=True):
            found[index] = replace(problems[index], line=one.line)
    return tuple(found)


# --- locations of documents in a server's folder, below `api/` ---


@dataclass(frozen=True, slots=True)
class DocumentFiles:
    """The files of a document by path below the server's folder, with the path of the `main` file."""

    main: str
    files: dict[str, bytes]


def collect_document_files(document: Document, label: str = "") -> DocumentFiles:
    """Return the files of a document, below `api/`, or `api/<label>/` with a label.

    A single file is named after its kind and format, such as `openapi.yaml`. Several files keep their relative paths.
    Files from several hosts raise a DocumentError, because a folder cannot keep their references.
    """
    folder = f"api/{label}" if label else "api"
    if len(document.parts) <= 1:
        main = f"{folder}/{document_kind(document).file}.{document.format}"
        return DocumentFiles(main, {main: document.raw})
    paths = {key: _relative_part(key) for key in document.parts}
    if len({host for host, _ in paths.values()}) > 1:
        raise DocumentError("the files of the document are on several hosts", "bundle them into one file first")
    common = posixpath.commonpath([str(PurePosixPath(path).parent) for _, path in paths.values()])
    targets = {key: f"{folder}/{PurePosixPath(path).relative_to(common)}" for key, (_, path) in paths.items()}
    return DocumentFiles(targets[document.main], {targets[key]: part.raw for key, part in document.parts.items()})


def to_stored_document(document: Document, layout: DocumentFiles) -> Document:
    """Return the document as it will be read from the server's folder, so that `regenerate` has the same result.

    The keys of files are URLs after fetching, but paths after storing. A file outside the server's folder raises an
    UnsafePathError.
    """
    if len(document.parts) <= 1 and not document.refused:
        return document
    with TemporaryDirectory(prefix="mcpfactory-document-") as folder:
        for target, content in layout.files.items():
            file = server_files.resolve_server_path(Path(folder), target)  # a URL may contain an encoded `..`
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        first = PurePosixPath(layout.main).parts[0]
        return replace(load(Path(folder, layout.main), root=Path(folder, first)), source=document.source)


def _relative_part(key: str) -> tuple[str, str]:
    """Return the host of a document part ("" for a local file), and the path of the part."""
    if is_url(key):
        url = urlsplit(key)
        return url.netloc, unquote(url.path).lstrip("/")
    return "", key


# --- documents in the folder of a server ---


def stored_documents(folder: Path, config: ServerConfig) -> dict[str, Document]:
    """Return the API documents in a server's folder with their overlays, by label."""
    return {api.label: stored_document(folder, api) for api in config.apis}


def stored_document(folder: Path, api: ApiConfig) -> Document:
    """Return a server's API document with its overlays applied. References can point to files in `api/`."""
    path = folder / api.document
    root = folder / Path(api.document).parts[0] if len(Path(api.document).parts) > 1 else folder
    if not path.resolve().is_relative_to(folder.resolve()):
        hint = "copy it to api/ and set the new path"
        raise SettingsError(f"{folder / CONFIG}: the document {api.document!r} is not in the server's folder", hint)
    return apply_overlays(load(str(path), root=root), load_configured_overlays(folder, api))


def load_configured_overlays(folder: Path, api: ApiConfig) -> tuple[Overlay, ...]:
    """Return the overlays in the configuration.

    Raise a SettingsError for an overlay outside the server's folder, and a DocumentError for an invalid file.
    """
    for name in api.overlays:
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            hint = "copy it to api/overlays/ and set the new path"
            raise SettingsError(f"{folder / CONFIG}: the overlay {name!r} is not in the server's folder", hint)
    return tuple(load_overlay(folder / name, name) for name in api.overlays)


# --- URLs of documents ---


def is_url(source: str) -> bool:
    """Return True if a document's source is a URL and not a file."""
    return re.match(r"https?://", source) is not None


def redacted_source_url(source: str) -> str:
    """Return the URL of a document without credentials and query, or "" for a local file."""
    if not is_url(source):
        return ""
    return re.sub(r"^(https?://)[^/@]*@", r"\1", source).partition("?")[0].partition("#")[0]


# --- private hosts: calls are allowed to the host of a document if the user gave its URL ---
#
# A private URL that only the document contains is not permitted, because the document's author may be an attacker.


def private_source_url(source: str) -> str:
    """Return a document's URL if its host resolves to a private address, else ""."""
    host = host_port_of(source)
    if not host or private_target_kind(source):
        return source if host else ""
    host, _, port = host.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError:  # the name may resolve only on a proxy
        return ""
    return "" if all(is_public(str(one[4][0])) for one in found) else source


def private_api_host(source: str, base_url: str) -> tuple[str, ...]:
    """Return host and port of an API's base URL if the document came from the same private host."""
    source_host, api_host = host_port_of(source), host_port_of(base_url)
    # localhost and 127.0.0.1 are the same host
    here = private_target_kind(source) == private_target_kind(base_url) == "this machine"
    if not source_host or not (
        source_host == api_host or (here and source_host.rpartition(":")[2] == api_host.rpartition(":")[2])
    ):
        return ()
    return (api_host,)
