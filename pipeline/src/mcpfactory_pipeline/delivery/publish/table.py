"""The publish targets, one row each, and their reference page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mcpfactory_codegen.text import listed
from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.delivery.publish import docker, mcpb, oci, pypi, registry, sbom
from mcpfactory_pipeline.delivery.publish.server_rules import RULES
from mcpfactory_pipeline.delivery.publish.target import PublishTarget

_ROWS: Final = (
    pypi.TARGET,
    mcpb.TARGET,
    oci.TARGET,
    docker.TARGET,
    sbom.TARGET,
    registry.TARGET,  # the last: what it says is where the others are
)
TARGETS: Final[Mapping[str, PublishTarget]] = {row.id: row for row in _ROWS}


def targets_named(names: Iterable[str], table: Mapping[str, PublishTarget] = TARGETS) -> Sequence[PublishTarget]:
    """Return the targets of these names, in the order of the table.

    Raises:
        NotFoundError: a name is unknown.
    """
    wanted = set(names)
    if unknown := sorted(wanted - set(table)):
        raise NotFoundError(f"there is no target {unknown[0]!r}", hint=listed(unknown[0], table, "targets"))
    return [row for row in table.values() if row.id in wanted]


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
        kind = kind or (f" A file, while `{target.destination}` is empty." if target.destination else "")
        parts.append(f"\n### `{target.id}`\n\n{target.title}.{kind}\n")
        if target.options:
            parts.append("\n| option | default |\n|---|---|\n")
            parts += [f"| `{name}` | {f'`{value}`' if value else '–'} |\n" for name, value in target.options.items()]
    parts.append(_RULES)
    parts += [f"| `{rule.id}` | {rule.source} | {rule.statement} |\n" for rule in RULES]
    return "".join(parts)
