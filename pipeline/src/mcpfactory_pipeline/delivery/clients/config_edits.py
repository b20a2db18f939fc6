"""Edits of a client's configuration text: insert or remove a server.

After an edit, the result is parsed and compared with the expected data. Unknown syntax therefore causes an error, but
never a loss of settings.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from mcpfactory_pipeline.delivery.clients import jsonc, toml_edits, yaml_edits
from mcpfactory_pipeline.delivery.clients.client_profiles import ClientConfigFile, ConfigLayout, Format
from mcpfactory_pipeline.delivery.clients.config_files import ConfigSyntaxError

_BOM: Final = "\ufeff"


class _Editor(NamedTuple):
    parse: Callable[[str], Any]
    insert: Callable[..., str]
    remove: Callable[..., str]


_EDITORS: Final[Mapping[Format, _Editor]] = {
    "json": _Editor(jsonc.parse, jsonc.insert, jsonc.remove),
    "toml": _Editor(toml_edits.parse, toml_edits.insert, toml_edits.remove),
    "yaml": _Editor(
        yaml_edits.parse,
        functools.partial(yaml_edits.insert, listed=False),
        functools.partial(yaml_edits.remove, listed=False),
    ),
    "yaml list": _Editor(
        yaml_edits.parse,
        functools.partial(yaml_edits.insert, listed=True),
        functools.partial(yaml_edits.remove, listed=True),
    ),
}


def read(text: str, config: ClientConfigFile) -> Any:
    """Return the parsed configuration."""
    data = _EDITORS[config.format].parse(text.removeprefix(_BOM))
    if not isinstance(data, dict):
        raise ConfigSyntaxError("the top level is not an object")
    return data


def detect_layout(data: Any, forms: Iterable[ConfigLayout]) -> ConfigLayout:
    """Return the layout whose container the configuration has. The default is the first layout."""
    usual, *others = forms
    return next((form for form in others if _is_container(_at(data, form.container))), usual)


def entries(data: Any, form: ConfigLayout, config: ClientConfigFile) -> dict[str, Any]:
    """Return the valid entries in a configuration by server name."""
    found = _at(data, form.container)
    if config.format == "yaml list":
        items = found if isinstance(found, list) else []
        return {str(item["name"]): item for item in items if isinstance(item, dict) and "name" in item}
    return {name: entry for name, entry in found.items() if isinstance(entry, dict)} if isinstance(found, dict) else {}


def install(text: str | None, config: ClientConfigFile, form: ConfigLayout, name: str, entry: Mapping[str, Any]) -> str:
    """Insert the entry, and return the new text. `text` is None for a new file.

    Raises:
        ConfigSyntaxError: the text violates its format, or cannot be changed in place.
    """
    mark, body = _split(config.blank if text is None else text)
    before = read(body, config)
    if entries(before, form, config).get(name) == entry:
        return mark + body
    editor = _EDITORS[config.format]
    after = editor.insert(body, (*form.container, name), entry)
    _verify(editor.parse(after), _expected(before, config, form, name, entry))
    return mark + after


def uninstall(
    text: str, config: ClientConfigFile, form: ConfigLayout, name: str, *, backups: Iterable[str | None] = ()
) -> str | None:
    """Remove the entry, and return the new text. Return None if `install` created the file.

    `backups` are earlier texts of the file. If inserting the entry into a backup gives the current text, the backup is
    returned.
    """
    mark, body = _split(text)
    before = read(body, config)
    entry = entries(before, form, config).get(name)
    if entry is None:
        return text

    def with_entry(old: str | None) -> str:
        if old is not None and name in entries(read(old, config), form, config):
            return old
        return install(old, config, form, name, entry)

    for old in backups:
        if old != text and _leads_to(text, old, with_entry):
            return old
    editor = _EDITORS[config.format]
    after = editor.remove(body, (*form.container, name))
    _verify(editor.parse(after), _expected(before, config, form, name, None))
    return mark + after


def _leads_to(text: str, old: str | None, with_entry: Callable[[str | None], str]) -> bool:
    try:
        return with_entry(old) == text
    except ConfigSyntaxError:
        return False


def _split(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _is_container(found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(entry, dict) for entry in found.values())


def _at(data: Any, path: Iterable[str]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _expected(
    data: Any, config: ClientConfigFile, form: ConfigLayout, name: str, entry: Mapping[str, Any] | None
) -> Any:
    whole = copy.deepcopy(data)
    inner = whole
    for key in form.container[:-1]:
        inner = inner.setdefault(key, {})
    last = form.container[-1]
    if config.format == "yaml list":
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


def _verify(found: Any, expected: Any) -> None:
    if _without_empty(found) != _without_empty(expected):
        raise ConfigSyntaxError("mcpfactory cannot edit the notation of this file")


def _without_empty(data: Any) -> Any:
    """Remove empty top-level containers, because TOML edits remove a container with its last entry."""
    return (
        {key: value for key, value in data.items() if value not in ({}, [], None)} if isinstance(data, dict) else data
    )
