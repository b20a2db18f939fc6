"""The page `docs/reference/settings.md`, generated from the models of the settings files when the site is built."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory.commands.init import settings_schema

_HEAD: Final = """\
# Settings

All keys of the settings files, by table. Unknown keys and invalid values are errors:

```
my-servers/mcpfactory.toml:12: ci.jobs: 300 is not valid
hint: use a number from 1 to 256
```

To complete keys in an editor with TOML support (Even Better TOML for VS Code, or taplo), write the JSON Schema of both
`mcpfactory.toml` next to the root one, and name it in the first line of each file:

```
mcpfactory schema > mcpfactory.schema.json
```

```toml
#:schema ./mcpfactory.schema.json
```
"""
_TITLES: Final = {
    "root": "`mcpfactory.toml` of a workspace",
    "server": "`mcpfactory.toml` of a server",
    "waivers": "`waivers.toml` of a server",
}


def settings_reference() -> str:
    """Return the whole page, as Markdown."""
    parts = [_HEAD]
    for kind, title in _TITLES.items():
        root = settings_schema(kind)
        parts += [f"## {title}\n", *_tables(root, root, "")]
    return "\n".join(parts)


def _tables(schema: Mapping[str, Any], root: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield the tables of keys below a place such as `pipeline.channels`."""
    rows, below = [], []
    for name, field in schema.get("properties", {}).items():
        key = f"{place}.{name}" if place else name
        options = [_resolved(one, root) for one in field.get("anyOf", [field])]
        tables = [one for one in options if "properties" in one or "oneOf" in one]
        listed = [_resolved(one["items"], root) for one in options if "items" in one]
        listed = [one for one in listed if "properties" in one or "oneOf" in one]
        named = [_resolved(one["additionalProperties"], root) for one in options if _is_named(one)]
        named += [_resolved(each, root) for one in options for each in one.get("patternProperties", {}).values()]
        named = [one for one in named if "properties" in one]
        text = field.get("description", "")
        below += [(f"[{key}]", key, one, text) for one in tables if not listed]
        below += [(f"[[{key}]]", key, one, text) for each in listed for one in _kinds(each, root)]
        below += [(f"[{key}.<name>]", f"{key}.<name>", one, text) for one in named]
        if not (tables or listed or named):
            types = [kind for kind in map(_type, options) if kind]
            if any(kind.startswith("number") for kind in types):
                types = [kind for kind in types if not kind.startswith("whole number")]
            needed = "required" if name in schema.get("required", ()) else _default(field)
            rows.append(f"| `{name}` | {' or '.join(types)} | {needed} | {text} |")
    if rows:
        yield "\n".join(["| key | type | default | is |", "|---|---|---|---|", *rows, ""])
    for header, key, one, text in below:
        kind = one["properties"].get("kind", {}).get("const", "")
        yield f"### `{header}`" + (f' with `kind = "{kind}"`' if kind else "") + f"\n\n{text[:1].upper()}{text[1:]}.\n"
        yield from _tables(one, root, key)


def _is_named(schema: Mapping[str, Any]) -> bool:
    return isinstance(schema.get("additionalProperties"), Mapping)


def _kinds(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [_resolved(one, root) for one in schema.get("oneOf", [schema])]


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    return root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _type(schema: Mapping[str, Any]) -> str:
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else None):
        return ", ".join(f"`{json.dumps(one)}`" for one in choices if one != "")
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    names = {"integer": "whole number", "boolean": "true or false", "object": "table", "null": ""}
    kind = names.get(schema.get("type", ""), schema.get("type", "any value"))
    bounds = [f"{word} {schema[name]}" for name, word in (("minimum", "from"), ("maximum", "to")) if name in schema]
    return " ".join([kind, *bounds])


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default")
    if field.get("type") == "string" and not isinstance(value, str):  # a duration in seconds
        value = None
    return f"`{json.dumps(value)}`" if value not in (None, "", [], {}) else "–"
