"""The files of a new workspace, as text."""

from __future__ import annotations

import json
import tomllib
from typing import Final

from mcpfactory_pipeline.delivery.ci.github import PLACE, workflow
from mcpfactory_pipeline.delivery.ci.origin import Origin, with_uv_tables
from mcpfactory_pipeline.delivery.ci.settings import read_ci

_CONFIG: Final = """\
# A workspace of MCP servers, kept by mcpfactory.
[workspace]
name = {name}
{factory}
[pipeline]
# attempts = 2          # how often a stage is tried when the machinery breaks; a failed stage is never repeated
# backoff = 2           # seconds before the second attempt; doubled each time

# Channels (docs: how-to/approve-and-roll-back). These two are there when none is named:
# [[pipeline.channels]]
# name = "staging"        # the first: the run fills it
# [[pipeline.channels]]
# name = "production"
# from = "staging"
# approvals = 1

# A stage of your own, between `build` and promotion (docs: how-to/write-a-stage):
# [[pipeline.stages]]
# name = "licences"
# command = ["python", "tools/licences.py"]
{ci}"""

_FACTORY: Final = """\
# Where jobs and uv take mcpfactory from (docs: how-to/run-in-ci); `mcpfactory ci --factory` changes it:
factory = {factory}
"""

_CI: Final = """
[ci]
branch = {branch}
python = {python}         # as on the machine that made this: another version makes every server stale
"""

PYPROJECT: Final = """\
# A uv workspace with a virtual root: every server is a package of its own.
[tool.uv.workspace]
members = ["servers/*"]
"""

# Lines to add to the files of an existing repository if they are missing; they must not affect files that are not
# ours.
IGNORED: Final = (
    "/pipeline/artifacts/",
    "/pipeline/channels/",
    "/pipeline/locks/",
    "/pipeline/state/.*.tmp",
    "/servers/**/.venv/",
    "/servers/**/__pycache__/",
    "/servers/**/dist/",
    "/servers/**/.env",
)
ATTRIBUTES: Final = ("pipeline/history/*.jsonl merge=union",)

_GITIGNORE: Final = """\
.venv/
__pycache__/
*.pyc
.pytest_cache/
dist/
build/
*.egg-info/
.env
# Made anew from the sources and the tracked state:
pipeline/artifacts/
pipeline/channels/
pipeline/locks/
pipeline/state/.*.tmp
"""

_GITATTRIBUTES: Final = """\
# Histories only grow, and every line has an id: two branches that both added lines are merged by keeping all of them.
pipeline/history/*.jsonl merge=union
"""

CODEOWNERS: Final = ("CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS", "docs/CODEOWNERS")  # where forges look
_OWNED: Final = """\
# Who has to agree to a change of what the pipeline believes: what happened, who may sign, what channels ask for, what is waived,
# and what CI runs. It holds where the branch is protected and asks for reviews from code owners.
/pipeline/history/ {owner}
/pipeline/state/ {owner}
/pipeline/allowed_signers {owner}
/mcpfactory.toml {owner}
/servers/*/waivers.toml {owner}
/.github/ {owner}
/.gitlab/ {owner}
/.gitlab-ci.yml {owner}
/CODEOWNERS {owner}
/tools/mcpfactory/ {owner}
"""
NOBODY: Final = "@OWNER"  # until a person names somebody

_README: Final = """\
# {name}

MCP servers, made and kept healthy by `mcpfactory`.

```
mcpfactory new --from-openapi api.yaml     # a server from an API document
mcpfactory new notes --template minimal    # a server from a template
mcpfactory pipeline run                    # generate, build, test, validate, promote to staging
mcpfactory pipeline status                 # where every server stands
```

| folder | holds |
|---|---|
| `servers/<name>/` | one server, one package |
| `pipeline/state/` | where each server stands; tracked, one file per server |
| `pipeline/history/` | how it got there; tracked, only ever added to |
| `pipeline/artifacts/`, `pipeline/channels/` | wheels, reports, logs, and the indexes to install from; not tracked |
"""


def workspace_files(
    name: str, origin: Origin | None = None, *, branch: str = "main", python: str = "", owner: str = NOBODY
) -> dict[str, str]:
    """Every file of a new workspace with that name: path below its root → text.

    With an origin the workspace says where jobs and uv take the factory from, on which branch results are kept and by which
    Python they are made. `owner` has to agree to changes of what the pipeline believes.
    """
    config = _CONFIG.format(
        name=json.dumps(name),  # a JSON string is a TOML string
        factory=_FACTORY.format(factory=json.dumps(str(origin))) if origin else "",
        ci=_CI.format(branch=json.dumps(branch), python=json.dumps(python)) if origin else "",
    )
    return {
        "mcpfactory.toml": config,
        "pyproject.toml": with_uv_tables(PYPROJECT, origin) if origin else PYPROJECT,
        "README.md": _README.format(name=name),
        ".gitignore": _GITIGNORE,
        ".gitattributes": _GITATTRIBUTES,
        CODEOWNERS[0]: _OWNED.format(owner=owner),
        PLACE.as_posix(): workflow(read_ci(tomllib.loads(config))),
        "servers/.gitkeep": "",
        "pipeline/state/.gitkeep": "",
        "pipeline/history/.gitkeep": "",
    }
