"""GitLab pipelines, as text.

GitLab cannot compute a matrix in a running pipeline. `plan` therefore writes and starts a second pipeline with one job
per shard. A job gets a secret only if the secret's variable is defined for the job's environment. In a release, the
server's name and the run ID come from jobs that run no server code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.delivery.ci.fold import matrix
from mcpfactory_pipeline.delivery.ci.github import RESULTS, ci_template, common_blocks, replace_placeholders
from mcpfactory_pipeline.workspace.settings import CiSettings

PLACE: Final = Path(".gitlab", "mcpfactory.yml")
RELEASE_PLACE: Final = Path(".gitlab", "mcpfactory-release.yml")


_OPTION: Final = (
    'RESULTS=--no-results; if [ "${CI_MERGE_REQUEST_SOURCE_PROJECT_ID:-}" = "$CI_PROJECT_ID" ] && '
    f'[ "${{CI_MERGE_REQUEST_SOURCE_BRANCH_NAME#{RESULTS}}}" != "$CI_MERGE_REQUEST_SOURCE_BRANCH_NAME" ]; '
    "then RESULTS=--results; fi"
)


def gitlab_pipeline(settings: CiSettings) -> str:
    """Return the pipeline file that `.gitlab-ci.yml` includes."""
    return _filled("gitlab/pipeline.yml", settings, PLACE=PLACE.as_posix())


def gitlab_shards(groups: Sequence[Sequence[str]], settings: CiSettings, run: str) -> str:
    """Return the pipeline with one job per group of servers, and a job that merges the results of these jobs."""
    jobs = [
        f"shard-{number}:\n  extends: .shard\n  variables:\n    SHARD: {json.dumps(str(number))}\n    SERVERS: {json.dumps(' '.join(group))}\n\n"
        for number, group in enumerate(groups, 1)
    ]
    text = _filled("gitlab/shards.yml", settings).replace("@JOBS@\n", "".join(jobs))
    return replace_placeholders(text, {"RUN": json.dumps(run), "ASSIGNED": json.dumps(json.dumps(matrix(groups)))})


def gitlab_release(settings: CiSettings) -> str:
    """Return the release file that `.gitlab-ci.yml` includes."""
    return _filled("gitlab/release.yml", settings, PLACE=RELEASE_PLACE.as_posix(), RESULTS=f"{RESULTS}-$RUN")


def _filled(name: str, settings: CiSettings, **more: str) -> str:
    blocks = {
        "BASE": ci_template("gitlab/base.yml"),
        "KEEPING": ci_template("gitlab/keeping.yml").removesuffix("\n"),
        "PUSHING": ci_template(f"gitlab/{settings.push}.yml").removesuffix("\n"),
        "SKIP": " [skip ci]" if settings.push == "branch" else "",
        "OPTION": "RESULTS=--no-results" if settings.push == "branch" else _OPTION,
        "IMAGE": json.dumps(settings.image or f"python:{settings.python}"),  # a JSON string is also a valid YAML string
        "INSTALL": json.dumps(settings.install),
    }
    return replace_placeholders(ci_template(name), blocks | common_blocks(settings) | {"RESULTS": RESULTS} | more)
