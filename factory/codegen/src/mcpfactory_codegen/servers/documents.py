"""The API documents of a server: which were asked for and under which labels, and what all of them are together. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from mcpfactory_codegen.combine import alike, combine, labelled
from mcpfactory_codegen.credentials import NO_OPTIONS, CredentialOptions, bind_credentials
from mcpfactory_codegen.ir import Api, Problem, split_label
from mcpfactory_codegen.read.document import Document
from mcpfactory_codegen.read.lines import located
from mcpfactory_codegen.select import select
from mcpfactory_codegen.servers.apis import LABEL, SHARED_CREDENTIALS, ApiConfig
from mcpfactory_codegen.sources.reading import read_source
from mcpfactory_codegen.text import VERSION, clean, words

__all__ = ["ApiSource", "Apis", "Sources", "choose_labels", "located_in", "read_documents", "sources_of"]

_LABELLED: Final = re.compile(r"([a-z][a-z0-9-]*)=(.+)\Z", re.DOTALL)
_SAYING_NOTHING: Final = frozenset(
    {"openapi", "swagger", "api", "apis", "spec", "index", "schema", "rest", "docs", "json", "yaml"}
)
_COMMON: Final = frozenset({"service", "services"})
_LONGEST: Final = 30


# --- what was asked for ---


@dataclass(frozen=True, slots=True)
class ApiSource:
    """One document that was asked for: `place` is its path or URL, `label` "" when none was given."""

    place: str
    label: str = ""


Sources = str | Path | Sequence[str | Path | ApiSource] | None
"""Where documents come from: paths or URLs, each with a label if there are several: `messaging=twilio.yaml`."""


def sources_of(sources: Sources) -> tuple[ApiSource, ...]:
    """Return the documents that were asked for. A file whose name is the whole text has no label."""
    every = [sources] if isinstance(sources, str | Path) else list(sources or ())
    return tuple(one if isinstance(one, ApiSource) else _source(str(one)) for one in every)


def _source(text: str) -> ApiSource:
    match = _LABELLED.match(text)
    if match is None or not LABEL.match(match[1]) or Path(text).is_file():
        return ApiSource(text)
    return ApiSource(match[2], match[1])


def choose_labels(documents: Sequence[tuple[ApiSource, str]]) -> tuple[str, ...]:
    """Return a label for each of several documents: the one that was given, or what tells its file or title from the others'.

    Args:
        documents: where each is from, and its title.
    """
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
    """Return the words of a file's name; of the title, the host or the folder, where that is called like any other."""
    path = PurePosixPath(unquote(urlsplit(place).path) if "://" in place else place.replace("\\", "/"))
    stem = words(clean(path.name).partition(".")[0])
    host = words(clean(urlsplit(place).hostname or "")) if "://" in place else ()
    for found in (stem, words(clean(title)), host, words(clean(path.parent.name))):
        if set(found) - _SAYING_NOTHING and not all(VERSION.match(word) for word in found):
            return tuple(word for word in found if word not in _SAYING_NOTHING)
    return ("api",)


def _apart(every: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the words of each without those that all begin or end with, and without versions, as long as they stay apart."""
    rest = [list(parts) for parts in every]
    for end in (0, -1):
        while len(rest) > 1 and all(len(parts) > 1 for parts in rest) and len({parts[end] for parts in rest}) == 1:
            rest = [parts[1:] if end == 0 else parts[:-1] for parts in rest]
    rest = _without(rest, lambda word: word in _COMMON)
    return _without(rest, lambda word: VERSION.match(word) is not None)


def _without(every: list[list[str]], dropped: Callable[[str], bool]) -> list[list[str]]:
    """Return the words of each without some, where it stays apart from the others."""
    plain = [[word for word in parts if not dropped(word)] for parts in every]
    counts = Counter(map(tuple, plain))
    return [short if short and counts[tuple(short)] == 1 else parts for short, parts in zip(plain, every, strict=True)]


# --- what they are together ---


@dataclass(frozen=True, slots=True)
class Apis:
    """The documents of a server as one API. `alike` are the security schemes that several have, each with credentials of its own.

    By label, `operations` counts those of each document and `bases` has the address that it states.
    """

    api: Api
    operations: Mapping[str, int]
    bases: Mapping[str, str]
    alike: tuple[str, ...] = ()


def read_documents(
    apis: Sequence[ApiConfig], documents: Mapping[str, Document], credentials: CredentialOptions = NO_OPTIONS
) -> Apis:
    """Return what the documents, by label, have of what their tables select, without parameters that are credentials."""
    read = {one.label: bind_credentials(read_source(documents[one.label]), credentials) for one in apis}
    read = {label: labelled(api, label) for label, api in read.items()}
    chosen = {one.label: select(read[one.label], one.selection) for one in apis}
    if len(apis) > 1:
        chosen = _without_matched(apis, chosen)
    shared = [one.label for one in apis if one.credentials == SHARED_CREDENTIALS]
    return Apis(
        api=combine(chosen, shared),
        operations={label: len(api.operations) + len(api.skipped) for label, api in read.items()},
        alike=alike(chosen, shared) if len(apis) > 1 else (),
        bases={label: api.base_url for label, api in read.items()},
    )


def _without_matched(apis: Sequence[ApiConfig], chosen: Mapping[str, Api]) -> dict[str, Api]:
    """Return the APIs without the problem that a selection matches nothing where it does so in another document."""
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
    """Return the pointers under which `select` reports the terms of a selection."""
    chosen = api.selection
    kinds = {"tag": chosen.include_tags, "path": chosen.include_paths, "operation": chosen.include_operations}
    found = {f"include-{kind}={term}" for kind, terms in kinds.items() for term in terms}
    return found | {f"include-method={method.upper()}" for method in chosen.include_methods}


def located_in(documents: Mapping[str, Document], problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the problems with the lines at which they stand in their documents."""
    if set(documents) == {""}:
        return located(documents[""], problems)
    found = list(problems)
    for label, document in documents.items():
        places = [index for index, one in enumerate(problems) if _is_of(label, one.pointer)]
        inside = [replace(problems[index], pointer=_inside(label, problems[index].pointer)) for index in places]
        for index, one in zip(places, located(document, inside), strict=True):
            found[index] = replace(problems[index], line=one.line)
    return tuple(found)


def _is_of(label: str, pointer: str) -> bool:
    found, _ = split_label(pointer)
    return found == label


def _inside(label: str, pointer: str) -> str:
    return split_label(pointer)[1] if label else pointer
