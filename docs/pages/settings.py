"""Generate the page `docs/reference/settings.md` from the models of the settings files when the site is built."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcpfactory.commands.init import settings_schema
from mcpfactory_codegen.settings import additional_properties_schema, schema_alternatives
from mcpfactory_runtime.schemas.walk import items_schema_of, properties_of, required_of

_HEAD: Final = """\
# Settings

This page lists the keys of the settings files by table. Unknown keys and invalid values are errors:

```
my-servers/mcpfactory.toml:12: ci.jobs: 300 is not valid
hint: use a number from 1 to 256
```

To complete keys in an editor with TOML support (Even Better TOML for VS Code, or taplo), write the JSON Schema of both kinds
of `mcpfactory.toml` next to the root file. Name the schema in the first line of each file:

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
    """Return the page as Markdown."""
    parts = [_HEAD]
    for kind, title in _TITLES.items():
        root = settings_schema(kind)
        parts += [f"## {title}\n", *_tables(root, root, "")]
    return "\n".join(parts)


def _tables(schema: Mapping[str, Any], root: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield the tables of keys below a place such as `pipeline.channels`."""
    rows, below = [], []
    for name, field in properties_of(schema).items():
        key, options = f"{place}.{name}" if place else name, list(schema_alternatives(field, root))
        lists = _tables_of(map(items_schema_of, options), root)
        headers = [(f"[[{key}]]", key, one) for one in lists]
        headers += [(f"[{key}]", key, one) for one in options if properties_of(one) and not lists]
        named = _tables_of(map(additional_properties_schema, options), root)
        headers += [(f"[{key}.<name>]", f"{key}.<name>", one) for one in named]
        text = field.get("description", "")
        below += [(*header, text) for header in headers]
        if not headers:
            types = [kind for kind in map(_type, options) if kind]
            if any(kind.startswith("number") for kind in types):
                types = [kind for kind in types if not kind.startswith("whole number")]
            needed = "required" if name in required_of(schema) else _default(field)
            rows.append(f"| `{name}` | {' or '.join(types)} | {needed} | {text} |")
    if rows:
        yield "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows, ""])
    for header, key, one, text in below:
        kind = properties_of(one).get("kind", {}).get("const", "")
        yield f"### `{header}`" + (f' with `kind = "{kind}"`' if kind else "") + f"\n\n{text[:1].upper()}{text[1:]}.\n"
        yield from _tables(one, root, key)


def _tables_of(schemas: Iterable[Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas of tables among these schemas and their alternatives."""
    found = (one for schema in schemas if isinstance(schema, Mapping) for one in schema_alternatives(schema, root))
    return [one for one in found if properties_of(one)]


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
