"""The files of a new workspace, as text."""

from __future__ import annotations

import json

from mcpfactory_pipeline.ci.settings import read_ci
from mcpfactory_pipeline.ci.workflow import PLACE, workflow

__all__ = ["workspace_files"]

_CONFIG = """\
# A workspace of MCP servers, kept by mcpfactory.
[workspace]
name = {name}

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
"""

_PYPROJECT = """\
# A uv workspace with a virtual root: every server is a package of its own.
[tool.uv.workspace]
members = ["servers/*"]
"""

_GITIGNORE = """\
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

_GITATTRIBUTES = """\
# Histories only grow, and every line has an id: two branches that both added lines are merged by keeping all of them.
pipeline/history/*.jsonl merge=union
"""

_README = """\
# {name}

MCP servers, made and kept healthy by `mcpfactory`.

```
mcpfactory new --from-openapi api.yaml     # a server from an API document
mcpfactory new notes --template minimal    # a server from a template
mcpfactory pipeline run --all              # generate, build, test, validate, promote to staging
mcpfactory pipeline status                 # where every server stands
```

| folder | holds |
|---|---|
| `servers/<name>/` | one server, one package |
| `pipeline/state/` | where each server stands; tracked, one file per server |
| `pipeline/history/` | how it got there; tracked, only ever added to |
| `pipeline/artifacts/`, `pipeline/channels/` | wheels, reports, logs, and the indexes to install from; not tracked |
"""


def workspace_files(name: str) -> dict[str, str]:
    """Every file of a new workspace with that name: path below its root → text."""
    return {
        "mcpfactory.toml": _CONFIG.format(name=json.dumps(name)),  # a JSON string is a TOML string
        "pyproject.toml": _PYPROJECT,
        "README.md": _README.format(name=name),
        ".gitignore": _GITIGNORE,
        ".gitattributes": _GITATTRIBUTES,
        PLACE.as_posix(): workflow(read_ci({})),
        "servers/.gitkeep": "",
        "pipeline/state/.gitkeep": "",
        "pipeline/history/.gitkeep": "",
    }
