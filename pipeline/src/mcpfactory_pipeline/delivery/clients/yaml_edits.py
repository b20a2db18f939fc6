"""In-place edits of YAML text: entries of a mapping, or of a list of mappings with a `name`.

Flow style is refused, except for empty containers (`{}`, `[]`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from mcpfactory_pipeline.delivery.clients.config_files import ConfigSyntaxError

_NAME: Final = "name"  # key that identifies an entry in a list

_NULL: Final = "tag:yaml.org,2002:null"


def parse(text: str) -> Any:
    """Return the parsed data. An empty text is an empty mapping."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigSyntaxError(" ".join(str(error).split())) from error
    return {} if data is None else data


def insert(text: str, path: Sequence[str], value: Mapping[str, Any], *, listed: bool) -> str:
    """Insert or replace the entry at the path, and return the new text.

    `path` consists of the key of the container and the key of the entry.
    """
    top, key = path
    root = _root(text)
    found = _pair(root, top) if root is not None else None
    end = "\r\n" if "\r\n" in text else "\n"
    if found is None:
        block = f"{top}:\n{textwrap.indent(_entry(key, value, listed), '  ')}".replace("\n", end)
        if text and not text.endswith("\n"):
            return text + end + block.removesuffix(end)
        return text + block
    name, container = found
    if container.tag != _NULL and not isinstance(container, yaml.SequenceNode if listed else yaml.MappingNode):
        raise ConfigSyntaxError(f"{top} is not a {('list' if listed else 'mapping')}")
    _require_block(top, container)
    place = _place(container, key, listed)
    if place is not None:
        start, stop = _lines(text, *place)
        return text[:start] + _block(text, start, _entry(key, value, listed), end) + text[stop:]
    if container.tag != _NULL and container.value:
        first = container.value[0] if listed else container.value[0][0]
        column = container.start_mark.column if listed else first.start_mark.column
        return _after(text, _last(container), _entry(key, value, listed), column, end)
    return _into_empty(text, name, container, _entry(key, value, listed), end)


def remove(text: str, path: Sequence[str], *, listed: bool) -> str:
    """Remove the entry, and return the new text."""
    top, key = path
    root = _root(text)
    found = _pair(root, top) if root is not None else None
    place = _place(found[1], key, listed) if found else None
    if found is None or place is None:
        return text
    name, container = found
    _require_block(top, container)
    start, stop = _lines(text, *place)
    rest = text[stop:]
    for newline in ("\r\n", "\n"):
        if rest.startswith(newline):
            rest = rest.removeprefix(newline)
            break
    else:  # keep the file without a final newline
        start = len(text[:start].removesuffix("\n").removesuffix("\r"))
    if len(container.value) > 1:
        return text[:start] + rest
    colon = text.index(":", name.end_mark.index) + 1
    return text[:colon] + (" []" if listed else " {}") + text[colon:start] + rest


def _require_block(key: str, container: Any) -> None:
    if not isinstance(container, yaml.ScalarNode) and container.flow_style and container.value:
        raise ConfigSyntaxError(f"{key} is written in flow style")


def _root(text: str) -> Any:
    parse(text)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None and (not isinstance(root, yaml.MappingNode) or root.flow_style):
        raise ConfigSyntaxError("the top level is not a mapping in block style")
    return root


def _pair(root: Any, key: str) -> tuple[Any, Any] | None:
    found = [(name, value) for name, value in root.value if name.value == key]
    if len(found) > 1:
        raise ConfigSyntaxError(f"{key!r} appears {len(found)} times")
    if found and found[0][1].start_mark.index < found[0][0].end_mark.index:
        raise ConfigSyntaxError(f"{key!r} is an alias")
    return found[0] if found else None


def _place(container: Any, key: str, listed: bool) -> tuple[int, int] | None:
    if listed:
        items = container.value if isinstance(container, yaml.SequenceNode) else []
        for item in items:
            pair = _pair(item, _NAME) if isinstance(item, yaml.MappingNode) else None
            if pair is not None and pair[1].value == key:
                return item.start_mark.index, _last(item)
        return None
    pair = _pair(container, key) if isinstance(container, yaml.MappingNode) else None
    return (pair[0].start_mark.index, _last(pair[1])) if pair else None


def _last(node: Any) -> int:
    """Return the end of a node's last value, because the end mark of a block points to the next token."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _last(last[1] if isinstance(last, tuple) else last)


def _lines(text: str, start: int, stop: int) -> tuple[int, int]:
    stop = len(text[:stop].rstrip())
    end = text.find("\n", stop)
    end = len(text) if end < 0 else end - (text[end - 1] == "\r")
    return text.rfind("\n", 0, start) + 1, end


def _after(text: str, place: int, entry: str, column: int, end: str) -> str:
    block = textwrap.indent(entry, " " * column).replace("\n", end).removesuffix(end)
    _, stop = _lines(text, place, place)
    return text[:stop] + end + block + text[stop:]


def _into_empty(text: str, name: Any, container: Any, entry: str, end: str) -> str:
    start, stop = container.start_mark.index, container.end_mark.index
    before = text[:start].rstrip(" ") if stop > start else text[:start]
    return _after(before + text[stop:], name.end_mark.index, entry, name.start_mark.column + 2, end)


def _block(text: str, start: int, entry: str, end: str) -> str:
    line = text[start:]
    column = len(line) - len(line.lstrip(" "))
    return textwrap.indent(entry, " " * column).replace("\n", end).removesuffix(end)


def _entry(key: str, value: Mapping[str, Any], listed: bool) -> str:
    data: Any = [dict(value)] if listed else {key: dict(value)}
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=False, width=10_000)
