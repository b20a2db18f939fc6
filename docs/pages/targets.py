"""The page `docs/reference/publish.md`, generated from the tables of targets and rules when the site is built."""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.delivery.publish.publish import TARGETS
from mcpfactory_pipeline.delivery.publish.server_rules import RULES

_HEAD: Final = """\
# Targets of `mcpfactory publish`, and the rules of `server.json`

How to use them: [Publish a server](../how-to/publish.md).

## Targets

In the order in which they are published to. Options stand in `[publish.<target>]` of the root `mcpfactory.toml`, or in `--set`.
An option whose name ends in `_variable` names the environment variable that holds a secret.
"""

_RULES: Final = """
## Rules of `server.json`

Schema 2025-12-11. `schema`: what the schema says. `registry`: what the official registry refuses besides. `mcpfactory`: what we refuse
because it would be dropped, or nobody could use it. All are judged without a network.

| rule | asked by | says |
|---|---|---|
| `server-json/shape` | schema, mcpfactory | All fields are known and have the type, length and form that the schema gives. |
"""


def publish_reference() -> str:
    """Return the whole page, as Markdown."""
    parts = [_HEAD]
    for target in TARGETS.values():
        kind = "" if target.upload else " A file: it is made, and nothing is sent."
        parts.append(f"\n### `{target.id}`\n\n{target.title}.{kind}\n")
        if target.options.model_fields:
            parts.append("\n| option | default | is |\n|---|---|---|\n")
        for name, option in target.options.model_fields.items():
            parts.append(f"| `{name}` | {f'`{option.default}`' if option.default else '–'} | {option.description} |\n")
    parts.append(_RULES)
    parts += [f"| `{rule.id}` | {rule.source} | {rule.statement} |\n" for rule in RULES]
    return "".join(parts)
