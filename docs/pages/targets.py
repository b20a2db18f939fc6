"""Generate the page `docs/reference/publish.md` from the tables of targets and rules when the site is built."""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.delivery.publish.publish import TARGETS
from mcpfactory_pipeline.delivery.publish.server_rules import RULES

_HEAD: Final = """\
# Targets of `mcpfactory publish`, and the rules of `server.json`

How to use them: [Publish a server](../how-to/publish.md).

## Targets

`publish` uses the targets in this order. Set options in `[publish.<target>]` of the root `mcpfactory.toml`, or with `--set`.
An option whose name ends in `_variable` names the environment variable that holds a secret.
"""

_RULES: Final = """
## Rules of `server.json`

Rules for schema 2025-12-11. `schema` rules come from the schema. `registry` rules are additional checks of the official
registry. `mcpfactory` rules refuse fields that would be dropped, and entries that no client could use. All rules are checked
offline.

| rule | source | statement |
|---|---|---|
| `server-json/shape` | schema, mcpfactory | All fields are known and have the type, length and format of the schema. |
"""


def publish_reference() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    for target in TARGETS.values():
        kind = "" if target.upload else " It writes a file and sends nothing."
        parts.append(f"\n### `{target.id}`\n\n{target.title}.{kind}\n")
        if target.options.model_fields:
            parts.append("\n| option | default | description |\n|---|---|---|\n")
        for name, option in target.options.model_fields.items():
            parts.append(f"| `{name}` | {f'`{option.default}`' if option.default else '–'} | {option.description} |\n")
    parts.append(_RULES)
    parts += [f"| `{rule.id}` | {rule.source} | {rule.statement} |\n" for rule in RULES]
    return "".join(parts)
