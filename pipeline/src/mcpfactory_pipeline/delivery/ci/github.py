"""Workflows for GitHub Actions.

The pipeline workflow has four jobs. `plan` lists the changed servers, assigns them to jobs and sets the ID of the
run. `shard` (a matrix) runs the pipeline for some of the servers. `fold` merges the results of the shards, as far as
`plan` assigned the servers to them, verifies them and writes the summary. `keep` commits state and history, only on
the workspace's branch, and is the only job with write access. It uploads the channels, with the exact bytes that the
shards built and checked.

External input is never part of a script: values are passed in `env`. A pull request does not bring its own history.
People's decisions are on the branch, and `keep` works on the newest commit of the branch, so decisions made while the
shards ran count. A push is compared with the commit before it.

The release workflow has four jobs. `check` inspects the tag before any of its code runs: the tag must be on the
workspace's branch and match the version of its sources. `run` runs the server through the pipeline; the server's code
and tests run here, without any permissions. `publish` takes the files that `run` built of this server in this run,
and people's decisions on the branch; it determines the candidate itself. It is the only job with secrets and an
identity, and no code of the server runs in it. `keep` commits state and history, and is the only job with write
access.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.workspace.settings import CiSettings

PLACE: Final = Path(".github", "workflows", "mcpfactory.yml")

# Pinned by commit: a tag can be moved, a commit cannot.
ACTIONS: Final = {
    "checkout": "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2",
    "python": "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0",
    "upload": "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2",
    "attest": "actions/attest-build-provenance@a2bbfa25375fe432b6a289bc6b6cd05ecd0c4c32 # v4.1.0",
    "download": "actions/download-artifact@d3f86a106a0bac45b974a628896c90dbdf5c8093 # v4.3.0",
}

_TEXT: Final = """\
# Written by `mcpfactory ci`; settings are in [ci] of mcpfactory.toml. `mcpfactory ci --check` says when this file is stale.
name: mcpfactory
on:
  push:
    branches: [@BRANCH@]
  pull_request:
  workflow_dispatch:

permissions:
  contents: read

concurrency:
  group: mcpfactory-${{ github.ref }}
  cancel-in-progress: false

jobs:
  plan:
    runs-on: ubuntu-latest
    timeout-minutes: 15
    outputs:
      matrix: ${{ steps.assign.outputs.matrix }}
      jobs: ${{ steps.assign.outputs.jobs }}
      run: ${{ steps.assign.outputs.run }}
    steps:
@SETUP_WHOLE@
      - run: mcpfactory ci --check
      - run: mcpfactory pipeline verify
      - if: ${{ github.event_name == 'pull_request' }}
        env:
          BASE: ${{ github.base_ref }}
        run: mcpfactory ci --check --against "origin/$BASE"
      - if: ${{ github.event_name == 'push' && !github.event.created }}
        env:
          BEFORE: ${{ github.event.before }}
        run: |
          git cat-file -e "$BEFORE^{commit}" || git fetch --quiet origin "$BEFORE"
          mcpfactory ci --check --against "$BEFORE" --pushed
      - id: assign
        run: mcpfactory ci matrix --provider github >> "$GITHUB_OUTPUT"

  shard:
    needs: plan
    if: needs.plan.outputs.jobs != '0'
    runs-on: ubuntu-latest
    timeout-minutes: 350
    strategy:
      fail-fast: false
      matrix: ${{ fromJSON(needs.plan.outputs.matrix) }}
    env:
      SERVERS: ${{ matrix.servers }}
      RUN: ${{ needs.plan.outputs.run }}
      MCPFACTORY_ACTOR: ${{ github.actor }}
    steps:
@SETUP@
      - run: |
          @STOP_COMMANDS@
          mcpfactory ci run shard --servers="$SERVERS" --run "$RUN"
      - if: ${{ !cancelled() }}
        uses: @UPLOAD@
        with:
          name: shard-${{ matrix.shard }}
          path: shard
          retention-days: 14

  fold:
    needs: [plan, shard]
    if: ${{ !cancelled() && needs.plan.result == 'success' }}
    runs-on: ubuntu-latest
    timeout-minutes: 30
    env:
      ASSIGNED: ${{ needs.plan.outputs.matrix }}
      RUN: ${{ needs.plan.outputs.run }}
    steps:
@SETUP@
@DOWNLOAD_SHARDS@
      - run: |
          @STOP_COMMANDS@
          mcpfactory ci fold shards --run "$RUN" --assigned "$ASSIGNED" --summary "$GITHUB_STEP_SUMMARY"
      - run: mcpfactory pipeline verify

  keep:
    needs: [plan, fold]
    if: ${{ !cancelled() && needs.fold.result == 'success' && needs.plan.outputs.jobs != '0' && github.event_name != 'pull_request' && github.ref == 'refs/heads/@BRANCH@' }}
    runs-on: ubuntu-latest
    timeout-minutes: 30
    permissions:
      contents: write
    env:
      ASSIGNED: ${{ needs.plan.outputs.matrix }}
      RUN: ${{ needs.plan.outputs.run }}
    steps:
@SETUP_BRANCH@
@DOWNLOAD_SHARDS@
      - run: |
          @STOP_COMMANDS@
          mcpfactory ci fold shards --run "$RUN" --assigned "$ASSIGNED"
      - run: mcpfactory pipeline verify
@KEEPING@
      - uses: @UPLOAD@
        with:
          name: channels
          path: pipeline/channels
          if-no-files-found: ignore
          retention-days: 14
"""

_SETUP: Final = """\
      - uses: @CHECKOUT@
        with:
          persist-credentials: @CREDENTIALS@
      - uses: @PYTHON@
        with:
          python-version: @VERSION@
      - run: @INSTALL@"""

# GitHub treats all later output of the step as text, so servers cannot send commands; it applies until the step ends.
_STOP_COMMANDS: Final = """echo "::stop-commands::$(python -c 'import secrets; print(secrets.token_hex(16))')\""""

_DOWNLOAD: Final = """\
      - if: needs.plan.outputs.jobs != '0'
        uses: @DOWNLOAD@
        with:
          pattern: shard-*
          path: shards
      - run: mkdir -p shards"""


_KEEPING: Final = """\
      - run: |
          git config user.name "github-actions[bot]"
          git config user.email "41898282+github-actions[bot]@users.noreply.github.com"
          git add pipeline/state pipeline/history
          if git diff --cached --quiet; then exit 0; fi
          git commit --quiet -m "Pipeline: state and history of this run [skip ci]"
          git pull --quiet --rebase && git push --quiet"""


def workflow(settings: CiSettings) -> str:
    """Return the workflow of a workspace."""
    return filled(_TEXT, settings)


def filled(text: str, settings: CiSettings) -> str:
    """Return a workflow's text with its `@BLOCKS@` in place."""
    blocks = {
        "SETUP_BRANCH": _SETUP.replace("@CREDENTIALS@", "true\n          fetch-depth: 0\n          ref: @BRANCH@"),
        "SETUP_WHOLE": _SETUP.replace("@CREDENTIALS@", "false\n          fetch-depth: 0"),
        "SETUP": _SETUP.replace("@CREDENTIALS@", "false"),
        "DOWNLOAD_SHARDS": _DOWNLOAD,
        "STOP_COMMANDS": _STOP_COMMANDS,
        "KEEPING": _KEEPING,
        "BRANCH": settings.branch,
        "VERSION": json.dumps(settings.python),  # a JSON string is a YAML string
        "CHANNEL": settings.channel,
        "ENVIRONMENT": settings.environment,
        "INSTALL": json.dumps(settings.install),
        **{name.upper(): action for name, action in ACTIONS.items()},
    }
    return replace_blocks(text, blocks)


def replace_blocks(text: str, blocks: Mapping[str, str]) -> str:
    """Return a text with values for its `@NAME@`, one after the other: a value may have blocks itself."""
    for name, value in blocks.items():
        text = text.replace(f"@{name}@", value)
    return text


RELEASE_PLACE: Final = Path(".github", "workflows", "mcpfactory-release.yml")

_RELEASE_TEXT: Final = """\
# Written by `mcpfactory ci --release`; settings are in [ci] of mcpfactory.toml. `mcpfactory ci --release --check` says when this file is stale.
name: mcpfactory-release
on:
  push:
    tags: ["*-v[0-9]+.[0-9]+.[0-9]+"]

permissions: {}

concurrency:
  group: mcpfactory-release-${{ github.ref }}
  cancel-in-progress: false

jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 15
    permissions:
      contents: read
    outputs:
      server: ${{ steps.tag.outputs.server }}
      run: ${{ steps.tag.outputs.run }}
    env:
      TAG: ${{ github.ref_name }}
    steps:
@SETUP_WHOLE@
      - run: mcpfactory ci --release --check
      - id: tag
        run: mcpfactory release check "$TAG" --branch "origin/@BRANCH@" --provider github >> "$GITHUB_OUTPUT"

  run:
    needs: check
    runs-on: ubuntu-latest
    timeout-minutes: 120
    permissions:
      contents: read
    env:
      SERVER: ${{ needs.check.outputs.server }}
      RUN: ${{ needs.check.outputs.run }}
      MCPFACTORY_ACTOR: ${{ github.actor }}
    steps:
@SETUP_WHOLE@
      - run: mcpfactory ci run built "$SERVER" --run "$RUN"
      - if: ${{ !cancelled() }}
        uses: @UPLOAD@
        with:
          name: built
          path: built
          retention-days: 14

  publish:
    needs: [check, run]
    runs-on: ubuntu-latest
    timeout-minutes: 60
    environment: @ENVIRONMENT@
    permissions:
      contents: read
      id-token: write
      attestations: write
    env:
      TAG: ${{ github.ref_name }}
      SERVER: ${{ needs.check.outputs.server }}
      RUN: ${{ needs.check.outputs.run }}
      MCPFACTORY_ACTOR: ${{ github.actor }}
    steps:
@SETUP_WHOLE@
      - uses: @DOWNLOAD@
        with:
          name: built
          path: built
      - run: mcpfactory ci fold built --run "$RUN" --server "$SERVER" --branch "origin/@BRANCH@"
      - id: built
        run: mcpfactory release check "$TAG" --provider github >> "$GITHUB_OUTPUT"
      - env:
          CANDIDATE: ${{ steps.built.outputs.candidate }}
        run: mcpfactory pipeline promote "$SERVER" --channel "@CHANNEL@" --candidate "${CANDIDATE:?of this tag nothing was built}"
      - uses: @ATTEST@
        with:
          subject-path: |
            pipeline/artifacts/${{ needs.check.outputs.server }}/${{ steps.built.outputs.candidate }}/*.whl
            pipeline/artifacts/${{ needs.check.outputs.server }}/${{ steps.built.outputs.candidate }}/*.tar.gz
      - env:
          PYPI_TOKEN: ${{ secrets.PYPI_TOKEN }}
        run: mcpfactory publish "$SERVER" --channel "@CHANNEL@"
      - if: ${{ !cancelled() }}
        run: mcpfactory ci pack published "$SERVER"
      - if: ${{ !cancelled() }}
        uses: @UPLOAD@
        with:
          name: published
          path: published
          retention-days: 14
          overwrite: true

  keep:
    needs: [check, publish]
    if: ${{ !cancelled() && needs.publish.result != 'skipped' }}
    runs-on: ubuntu-latest
    timeout-minutes: 30
    permissions:
      contents: write
    env:
      SERVER: ${{ needs.check.outputs.server }}
      RUN: ${{ needs.check.outputs.run }}
    steps:
@SETUP_BRANCH@
      - uses: @DOWNLOAD@
        with:
          name: published
          path: published
      - run: mcpfactory ci fold published --run "$RUN" --server "$SERVER" --released
      - run: mcpfactory pipeline verify
@KEEPING@
"""


def release_workflow(settings: CiSettings) -> str:
    """Return the workflow of a workspace."""
    return filled(_RELEASE_TEXT, settings)
