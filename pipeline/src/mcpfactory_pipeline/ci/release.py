"""The workflow for GitHub Actions that publishes a release when its tag is pushed, as text. Pure.

Four jobs. `check` looks at the tag, before anything of it runs: it must be on the workspace's branch and say the version of its
sources. `run` brings the server through the pipeline: its code and tests run here, without any right. `publish` takes what
`run` built of this server, in this run, and what people decided on the branch; it says itself which candidate that is. It is the
only job with secrets and an identity: nothing of the server runs in it. `keep` commits state and history, and is the only one
that may write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mcpfactory_pipeline.ci.settings import CiSettings
from mcpfactory_pipeline.ci.workflow import filled

__all__ = ["PLACE", "release_workflow"]

PLACE: Final = Path(".github", "workflows", "mcpfactory-release.yml")

_TEXT: Final = """\
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
    return filled(_TEXT, settings)
