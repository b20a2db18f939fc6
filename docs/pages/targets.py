"""Generate the page `docs/reference/publish.md` from the tables of targets and rules when the site is built."""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.delivery.publish.publish import TARGETS
from mcpfactory_pipeline.delivery.publish.server_json_rules import RULES

_HEAD: Final = """\
# Targets of `mcpfactory publish`, and the rules of `server.json`

To use the targets, see [publish a server](../how-to/publish.md).

## Targets

Targets run in this order. Set options in `[publish.<target>]` of the root `mcpfactory.toml`, or with `--set`.
An option whose name ends in `_variable` names the environment variable that holds a secret.
"""

_RULES: Final = """
## Rules of `server.json`

The rules of schema 2025-12-11 are checked without a network. The source of a rule is `schema` (required by the schema), `registry` (also refused by
the official registry), or `mcpfactory` (refused because clients would ignore it or could not use it).

| rule | source | requires |
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
