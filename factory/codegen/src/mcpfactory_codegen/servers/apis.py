"""The API documents of a server: `[api]` of its `mcpfactory.toml`, or `[[api]]` when there are several."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.select import Selection
from mcpfactory_codegen.servers.keys import LISTS
from mcpfactory_codegen.servers.values import ServerConfigError, quoted, text_of, texts_of, written

__all__ = ["LABEL", "SHARED_CREDENTIALS", "ApiConfig", "read_apis", "render_apis", "with_apis"]

LABEL: Final = re.compile(r"[a-z][a-z0-9-]{0,29}\Z")
SHARED_CREDENTIALS: Final = "shared"
_CREDENTIALS: Final = ("", "own", SHARED_CREDENTIALS)
_HOST: Final = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_OPTIONAL: Final = ("include_methods", "overlays", "allow_private")  # written only when they say something
_HEADER: Final = re.compile(r"^\[(\[)?[ \t]*api[ \t]*\](?(1)\])[^\n]*\n?", re.M)
_NEXT_TABLE: Final = re.compile(r"^\[", re.M)
_FILE: Final = "mcpfactory.toml"


@dataclass(frozen=True, slots=True)
class ApiConfig:
    """One API document of a server, and what of it becomes tools.

    `label` tells it apart from the server's other documents; "" for the only one, and for the one that was there before others
    came. `allow_private` are hosts (`host` or `host:port`) that may be called although their addresses are private. `overlays`
    are paths of files in the server's folder. `credentials` "shared": a security scheme that another document with this setting
    has, too, is one.
    """

    document: str
    source: str = ""
    label: str = ""
    allow_private: tuple[str, ...] = ()
    selection: Selection = field(default_factory=Selection)
    overlays: tuple[str, ...] = ()
    credentials: str = ""

    @property
    def named(self) -> str:
        """What messages call it: its label, or its file."""
        return self.label or self.document


def read_apis(data: Mapping[str, Any], path: Path) -> tuple[ApiConfig, ...]:
    """Return the API documents that a configuration names; `path` is what errors name.

    Raises:
        ServerConfigError: a value cannot be used, or two documents have one label.
    """
    value = data.get("api", {})
    if isinstance(value, dict):
        return (found,) if (found := _read(value, path)).document else ()
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise ServerConfigError(f"{path}: api is not a table", "write [api], or [[api]] for each of several documents")
    found_all = [_read(table, path) for table in value]
    for index, api in enumerate(found_all):
        if not api.document:
            hint = 'document = "api/openapi.yaml"; mcpfactory update NAME --from-openapi LABEL=FILE adds one'
            raise ServerConfigError(f"{path}: the [[api]] number {index + 1} has no document", hint)
        if api.label in (one.label for one in found_all[:index]):
            what = f"the label {api.label!r}" if api.label else "no label"
            hint = 'label = "…": each but the first needs one of its own'
            raise ServerConfigError(f"{path}: two [[api]] have {what}", hint)
        if api.document in (one.document for one in found_all[:index]):
            raise ServerConfigError(f"{path}: two [[api]] have the document {api.document}", "remove one of them")
    return tuple(found_all)


def _read(table: Mapping[str, Any], path: Path) -> ApiConfig:
    label, credentials = text_of(table, "label", path), text_of(table, "credentials", path)
    if label and not LABEL.match(label):
        hint = "a label is [a-z][a-z0-9-]*, at most 30 characters"
        raise ServerConfigError(f"{path}: api.label {label!r} cannot be used", hint)
    if credentials not in _CREDENTIALS:
        hint = 'api.credentials is "own" or "shared"'
        raise ServerConfigError(f"{path}: api.credentials {credentials!r} is not known", hint)
    return ApiConfig(
        document=text_of(table, "document", path),
        source=text_of(table, "source", path),
        label=label,
        allow_private=_hosts(table, path),
        overlays=texts_of(table, "overlays", path, "api"),
        credentials=credentials,
        selection=Selection(**{key: texts_of(table, key, path, "api") for key in LISTS}),
    )


def _hosts(table: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    found = texts_of(table, "allow_private", path, "api")
    for one in found:
        if not _HOST.fullmatch(one):
            hint = 'write a host or host:port in small letters, such as allow_private = ["127.0.0.1:8000"]'
            raise ServerConfigError(f"{path}: api.allow_private: {one!r} is no host", hint)
    return found


def render_apis(apis: Sequence[ApiConfig]) -> list[str]:
    """Return the lines of the tables; `[api]` for a single document without a label."""
    lines: list[str] = []
    for api in apis:
        lines += ["", "[[api]]" if len(apis) > 1 or api.label else "[api]"]
        lines += [f"label = {quoted(api.label)}"] if api.label else []
        lines += [f"document = {quoted(api.document)}"]
        lines += [f"{key} = {quoted(value)}" for key in ("source", "credentials") if (value := getattr(api, key))]
        for key in ("allow_private", *LISTS, "overlays"):
            value = getattr(api.selection if key in LISTS else api, key)
            if value or key not in _OPTIONAL:
                lines.append(f"{key} = {written(value)}")
    return lines


# --- the person's file, brought up to date ---


def with_apis(text: str, apis: Sequence[ApiConfig]) -> str:
    """Return the text of a configuration that names these documents: where each lies, came from and may be private.

    All else stays as the person wrote it. Documents that the text does not have yet are added behind the others, and `[api]`
    becomes `[[api]]` for them.

    Raises:
        ServerConfigError: the values do not stand on lines of their own.
    """
    written_now = _apis_of(text)
    if not any(_is_missing(written_now, api) for api in apis):
        return text
    tables = list(_HEADER.finditer(text))
    if len(tables) == len(written_now):
        for match in reversed(tables):  # from the end, so that what stands before keeps its place
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
    """Return the text with one table changed as its document is."""
    api = next((one for one in apis if one.label == now.get("label", "")), None)
    start = header.end()
    following = _NEXT_TABLE.search(text, start)
    end = following.start() if following else len(text)
    table = text[start:end]
    for key, value in _changed(now, api).items() if api is not None else ():
        line = f"{key} = {written(value)}\n"
        found = re.search(rf"^{key}[ \t]*=[^\n]*\n?", table, re.M)
        table = table[: found.start()] + line + table[found.end() :] if found else line + table
    opening = header[0]
    if len(apis) > 1 and not header[1]:
        opening = re.sub(r"\[([^\]]*)\]", r"[[\1]]", opening, count=1)
    return text[: header.start()] + opening + table + text[end:]


def _appended(text: str, added: Sequence[ApiConfig]) -> str:
    """Return the text with new tables behind the last one of an API document."""
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
            values = (("document", api.document), ("source", api.source), ("allow_private", list(api.allow_private)))
            lines = " and ".join(f"{key} = {written(value)}" for key, value in values if value)
            raise ServerConfigError(f"{_FILE}: {where} could not be brought up to date", f"write {lines} below [api]")


def _apis_of(text: str) -> list[dict[str, Any]]:
    found = tomllib.loads(text).get("api", [])
    return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)]
