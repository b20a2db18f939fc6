"""The targets, one row each: a module that exports `TARGET`. Their order is that in which they are published to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mcpfactory_codegen.text import listed
from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.publish import docker, mcpb, oci, pypi, registry, sbom
from mcpfactory_pipeline.publish.target import PublishTarget

__all__ = ["TARGETS", "targets_named"]

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
