"""Putting a server into the text of a client's configuration, and taking it out: text in, text out.

Whatever the way in which a format is changed, the result is read again and compared with what was meant; when they differ, the
text is refused rather than changed. So a manner of writing that we do not know costs a refusal, never somebody's settings.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from mcpfactory_pipeline.clients import jsonc, toml_text, yaml_text
from mcpfactory_pipeline.clients.errors import UnreadableError
from mcpfactory_pipeline.clients.table import Form, Format, Place

__all__ = ["entries", "form_of", "install", "read", "uninstall"]

_BOM: Final = "\ufeff"


class _Editor(NamedTuple):
    parse: Callable[[str], Any]
    put: Callable[..., str]
    take: Callable[..., str]


_EDITORS: Final[Mapping[Format, _Editor]] = {
    "json": _Editor(jsonc.parse, jsonc.put, jsonc.take),
    "toml": _Editor(toml_text.parse, toml_text.put, toml_text.take),
    "yaml": _Editor(
        yaml_text.parse,
        functools.partial(yaml_text.put, listed=False),
        functools.partial(yaml_text.take, listed=False),
    ),
    "yaml list": _Editor(
        yaml_text.parse, functools.partial(yaml_text.put, listed=True), functools.partial(yaml_text.take, listed=True)
    ),
}


def read(text: str, place: Place) -> Any:
    """Return the data of a configuration. Raises `UnreadableError`."""
    data = _EDITORS[place.format].parse(text.removeprefix(_BOM))
    if not isinstance(data, dict):
        raise UnreadableError("the whole is not an object")
    return data


def form_of(data: Any, forms: Iterable[Form]) -> Form:
    """Which of a client's forms a configuration is in: the first, unless the container of a later one is there."""
    usual, *others = forms
    return next((form for form in others if _is_container(_at(data, form.container))), usual)


def entries(data: Any, form: Form, place: Place) -> dict[str, Any]:
    """Return the servers in a configuration, by name. What is no server entry is left out."""
    found = _at(data, form.container)
    if place.format == "yaml list":
        items = found if isinstance(found, list) else []
        return {str(item["name"]): item for item in items if isinstance(item, dict) and "name" in item}
    return {name: entry for name, entry in found.items() if isinstance(entry, dict)} if isinstance(found, dict) else {}


def install(text: str | None, place: Place, form: Form, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with the entry; as it was when it has it already.

    Args:
        text: of the configuration; None when there is no file.
        place: of the configuration: its format, and what an empty one looks like.
        form: of the entries.
        name: of the server.
        entry: what the client starts or connects to.

    Raises:
        UnreadableError: it cannot be read, or not be changed in place.
    """
    mark, body = _split(place.blank if text is None else text)
    before = read(body, place)
    if entries(before, form, place).get(name) == entry:
        return mark + body
    editor = _EDITORS[place.format]
    after = editor.put(body, (*form.container, name), entry)
    _same(editor.parse(after), _with(before, place, form, name, entry))
    return mark + after


def uninstall(text: str, place: Place, form: Form, name: str, *, earlier: Iterable[str | None] = ()) -> str | None:
    """Return the text without the entry; as it was when it has none. None says: there was no file before, so there need be none.

    `earlier` are texts that the file had before; when one of them, with the entry put in, is what the file has now, it is given
    back byte for byte: also without the container that the entry needed. Raises `UnreadableError`.
    """
    mark, body = _split(text)
    before = read(body, place)
    entry = entries(before, form, place).get(name)
    if entry is None:
        return text

    def put_in(old: str | None) -> str:
        if old is not None and name in entries(read(old, place), form, place):
            return old
        return install(old, place, form, name, entry)

    for old in earlier:
        if old != text and _leads_to(text, old, put_in):
            return old
    editor = _EDITORS[place.format]
    after = editor.take(body, (*form.container, name))
    _same(editor.parse(after), _with(before, place, form, name, None))
    return mark + after


def _leads_to(text: str, old: str | None, put_in: Callable[[str | None], str]) -> bool:
    try:
        return put_in(old) == text
    except UnreadableError:
        return False


def _split(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _is_container(found: Any) -> bool:
    """Whether it holds servers, and is not one that happens to have the container's name."""
    return isinstance(found, dict) and all(isinstance(entry, dict) for entry in found.values())


def _at(data: Any, path: Iterable[str]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _with(data: Any, place: Place, form: Form, name: str, entry: Mapping[str, Any] | None) -> Any:
    """Return the data that is meant: with the entry, or without it when it is None."""
    whole = copy.deepcopy(data)
    inner = whole
    for key in form.container[:-1]:
        inner = inner.setdefault(key, {})
    last = form.container[-1]
    if place.format == "yaml list":
        items = [item for item in inner.get(last) or [] if not isinstance(item, dict) or item.get("name") != name]
        kept = [item.get("name") if isinstance(item, dict) else None for item in inner.get(last) or []]
        if entry is not None:
            items.insert(kept.index(name) if name in kept else len(items), dict(entry))
        inner[last] = items
        return whole
    inner[last] = {key: value for key, value in (inner.get(last) or {}).items() if key != name}
    if entry is not None:
        inner[last][name] = dict(entry)
    return whole


def _same(found: Any, meant: Any) -> None:
    if _without_empty(found) != _without_empty(meant):
        raise UnreadableError("it is written in a way that cannot be changed in place")


def _without_empty(data: Any) -> Any:
    """TOML has no empty table once the last entry of it is gone: an empty container at the top is as good as none."""
    return (
        {key: value for key, value in data.items() if value not in ({}, [], None)} if isinstance(data, dict) else data
    )
