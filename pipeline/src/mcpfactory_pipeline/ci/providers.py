"""What `mcpfactory ci` writes for whom: a row for each provider and purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.ci import gitlab, release, workflow
from mcpfactory_pipeline.ci.settings import CiSettings

__all__ = ["PROVIDERS", "Written"]


@dataclass(frozen=True, slots=True)
class Written:
    """A file: its place below the workspace, and its text by the settings."""

    place: Path
    text: Callable[[CiSettings], str]


# provider → (what runs the pipeline, what publishes releases)
PROVIDERS: Final[Mapping[str, tuple[Written, Written]]] = {
    "github": (Written(workflow.PLACE, workflow.workflow), Written(release.PLACE, release.release_workflow)),
    "gitlab": (Written(gitlab.PLACE, gitlab.gitlab_pipeline), Written(gitlab.RELEASE_PLACE, gitlab.gitlab_release)),
}
