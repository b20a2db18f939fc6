"""Workflows for GitHub Actions.

The pipeline workflow has four jobs. Only the job `keep` has write access.

- `plan` lists the changed servers, assigns them to jobs and sets the ID of the run.
- `shard` is a matrix of jobs. Each job of the matrix runs the pipeline for some servers.
- `fold` verifies and merges the results. A shard may submit results only for its own servers.
- `keep` commits state and history to the newest commit of the branch, and uploads the files of the channels.

Scripts read external input from environment variables only, to prevent injection.

`keep` uses the token of a bot, if the environment `mcpfactory-keep` has one. With `push = "pull-request"`, it opens a
pull request with the results.

The release workflow has four jobs. Only the job `publish` has secrets and an identity, and only the job `keep` has
write access.

- `check` inspects the tag before code of the tag runs. The tag must be on the workspace's branch. The tag's version
  must match the version of the sources.
- `run` runs the pipeline for the server, without any permissions.
- `publish` uses the files that `run` built, and people's decisions on the branch. This job runs no server code.
- `keep` commits state and history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.workspace.settings import CiSettings

PLACE: Final = Path(".github", "workflows", "mcpfactory.yml")
RELEASE_PLACE: Final = Path(".github", "workflows", "mcpfactory-release.yml")

# Actions are pinned by commit, because a tag can be moved.
ACTIONS: Final = {
    "checkout": "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2",
    "python": "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0",
    "upload": "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2",
    "attest": "actions/attest-build-provenance@a2bbfa25375fe432b6a289bc6b6cd05ecd0c4c32 # v4.1.0",
    "download": "actions/download-artifact@d3f86a106a0bac45b974a628896c90dbdf5c8093 # v4.3.0",
}

# A bot that the rules of the branch admit; without a bot, the job's own token.
_BOT: Final = "${{ secrets.MCPFACTORY_PUSH_TOKEN || github.token }}"

# Treats all later output as plain text, so that servers cannot send workflow commands.
_STOP_COMMANDS: Final = """echo "::stop-commands::$(python -c 'import secrets; print(secrets.token_hex(16))')\""""


RESULTS: Final = "mcpfactory-results"  # branch of results; the branch of a release also has the run ID
# A merge group can contain the pull request with results.
_OPTION: Final = (
    f"${{{{ (github.event_name == 'merge_group' || (startsWith(github.head_ref, '{RESULTS}') && "
    "github.event.pull_request.head.repo.full_name == github.repository)) && '--results' || '--no-results' }}"
)


def github_workflow(settings: CiSettings) -> str:
    """Return the pipeline workflow of a workspace."""
    return _filled("github/pipeline.yml", settings, RESULTS)


def github_release_workflow(settings: CiSettings) -> str:
    """Return the workflow that publishes a release for a pushed tag."""
    return _filled("github/release.yml", settings, f"{RESULTS}-$RUN")


def _filled(name: str, settings: CiSettings, results: str) -> str:
    direct = settings.push == "branch"
    setup = ci_template("github/setup.yml").removesuffix("\n")
    blocks = {
        "SETUP_BRANCH": setup.replace(
            "@CREDENTIALS@", "true\n          fetch-depth: 0\n          ref: @BRANCH@\n          token: @TOKEN@"
        ),
        "SETUP_WHOLE": setup.replace("@CREDENTIALS@", "false\n          fetch-depth: 0"),
        "SETUP": setup.replace("@CREDENTIALS@", "false"),
        "DOWNLOAD_SHARDS": ci_template("github/download.yml").removesuffix("\n"),
        "STOP_COMMANDS": _STOP_COMMANDS,
        "KEEPING": ci_template("github/keeping.yml").removesuffix("\n"),
        "PUSHING": ci_template(f"github/{settings.push}.yml").removesuffix("\n"),
        "TOKEN": _BOT,
        "RESULTS": results,
        "OPTION": "--no-results" if direct else _OPTION,
        "PULL_REQUESTS": "" if direct else "\n      pull-requests: write",
        "VERSION": json.dumps(settings.python),  # a JSON string is also a valid YAML string
        "INSTALL": json.dumps(settings.install),
        **{name.upper(): action for name, action in ACTIONS.items()},
    }
    return replace_placeholders(ci_template(name), blocks | common_blocks(settings))


def ci_template(name: str) -> str:
    """Return a template of a CI file."""
    return (files("mcpfactory_pipeline.delivery.ci") / "templates" / name).read_text("utf-8")


def common_blocks(settings: CiSettings) -> dict[str, str]:
    """Return the template values that do not depend on the provider."""
    return {"BRANCH": settings.branch, "CHANNEL": settings.channel, "ENVIRONMENT": settings.environment}


def replace_placeholders(text: str, blocks: Mapping[str, str]) -> str:
    """Replace each `@NAME@` in a text, in the order of `blocks`. A value may contain placeholders of later blocks."""
    for name, value in blocks.items():
        text = text.replace(f"@{name}@", value)
    return text
