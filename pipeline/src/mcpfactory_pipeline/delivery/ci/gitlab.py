"""GitLab pipelines, as text. Pure.

GitLab's matrix is fixed when its file is written, so `plan` writes a second pipeline, with a job for each shard, and
runs it. The jobs and their permissions are the same as in `github.py`; a job gets a secret through its environment,
for which the variable is defined. The tag names the server to publish, and a separate job names the run: neither
comes from a file left by a job that ran servers' code. A shard submits only its own folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.delivery.ci.fold import matrix
from mcpfactory_pipeline.delivery.ci.github import replace_blocks
from mcpfactory_pipeline.workspace.settings import CiSettings

PLACE: Final = Path(".gitlab", "mcpfactory.yml")
RELEASE_PLACE: Final = Path(".gitlab", "mcpfactory-release.yml")

_MAIN: Final = """\
# Written by `mcpfactory ci --provider gitlab`; settings are in [ci] of mcpfactory.toml. In .gitlab-ci.yml: include: [{local: @PLACE@}]
@BASE@
mcpfactory-plan:
  stage: build
  extends: .mcpfactory
  rules: &mcpfactory-rules
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == "@BRANCH@"
  script:
    - mcpfactory ci --provider gitlab --check
    - mcpfactory pipeline verify
    - |
      if [ -n "${CI_MERGE_REQUEST_DIFF_BASE_SHA:-}" ]; then
        mcpfactory ci --provider gitlab --check --against "$CI_MERGE_REQUEST_DIFF_BASE_SHA"
      elif [ -n "$(printf %s "${CI_COMMIT_BEFORE_SHA:-}" | tr -d 0)" ]; then
        git cat-file -e "$CI_COMMIT_BEFORE_SHA^{commit}" || git fetch --quiet origin "$CI_COMMIT_BEFORE_SHA"
        mcpfactory ci --provider gitlab --check --against "$CI_COMMIT_BEFORE_SHA" --pushed
      fi
    - mcpfactory ci matrix --provider gitlab > mcpfactory-shards.yml
  artifacts:
    paths: [mcpfactory-shards.yml]
    expire_in: 14 days

mcpfactory-run:
  stage: test
  needs: [mcpfactory-plan]
  rules: *mcpfactory-rules
  trigger:
    strategy: depend
    include:
      - artifact: mcpfactory-shards.yml
        job: mcpfactory-plan
"""

_SHARDS: Final = """\
# Written by `mcpfactory ci matrix --provider gitlab` for one pipeline.
stages: [shard, fold, keep]

workflow:
  rules:
    - when: always

@BASE@
.shard:
  stage: shard
  extends: .mcpfactory
  variables:
    RUN: @RUN@
  script:
    - mcpfactory ci run "shards/shard-$SHARD" --servers="$SERVERS" --run "$RUN"
  artifacts:
    when: always
    paths: ["shards/shard-$SHARD"]
    expire_in: 14 days

@JOBS@
fold:
  stage: fold
  extends: .mcpfactory
  when: always
  variables: &assigned
    RUN: @RUN@
    ASSIGNED: @ASSIGNED@
  script:
    - mkdir -p shards
    - mcpfactory ci fold shards --run "$RUN" --assigned "$ASSIGNED" --summary summary.md
    - mcpfactory pipeline verify
  artifacts:
    paths: [shards, summary.md]
    expire_in: 14 days

keep:
  stage: keep
  needs: [fold]
  extends: .mcpfactory
  rules:
    - if: $CI_COMMIT_BRANCH == "@BRANCH@"
  environment:
    name: mcpfactory-keep
    action: access
  variables: *assigned
  script:
    - git fetch --quiet origin "@BRANCH@" && git checkout --quiet -B mcpfactory-keep FETCH_HEAD
    - mkdir -p shards
    - mcpfactory ci fold shards --run "$RUN" --assigned "$ASSIGNED"
@KEEPING@
"""

_RELEASE: Final = """\
# Written by `mcpfactory ci --provider gitlab --release`; settings are in [ci] of mcpfactory.toml. In .gitlab-ci.yml: include: [{local: @PLACE@}]
@BASE@
mcpfactory-release-check:
  stage: build
  extends: .mcpfactory
  rules: &mcpfactory-release-rules
    - if: $CI_COMMIT_TAG =~ /^.+-v[0-9]+\\.[0-9]+\\.[0-9]+$/
  script:
    - mcpfactory ci --provider gitlab --release --check
    - git fetch --quiet origin "@BRANCH@"
    - mcpfactory release check "$CI_COMMIT_TAG" --branch FETCH_HEAD --provider gitlab > checked.env
  artifacts:
    paths: [checked.env]
    expire_in: 14 days

mcpfactory-release-run:
  stage: test
  needs: [mcpfactory-release-check]
  extends: .mcpfactory
  rules: *mcpfactory-release-rules
  script:
    - RUN="$(sed -n 's/^run=//p' checked.env)"
    - mcpfactory ci run built "${CI_COMMIT_TAG%-v*}" --run "$RUN"
  artifacts:
    paths: [built]
    expire_in: 14 days

mcpfactory-release-publish:
  stage: deploy
  needs: [mcpfactory-release-check, mcpfactory-release-run]
  extends: .mcpfactory
  rules: *mcpfactory-release-rules
  environment:
    name: @ENVIRONMENT@
  script:
    - SERVER="${CI_COMMIT_TAG%-v*}" RUN="$(sed -n 's/^run=//p' checked.env)"
    - git fetch --quiet origin "@BRANCH@"
    - mcpfactory ci fold built --run "$RUN" --server "$SERVER" --branch FETCH_HEAD
    - mcpfactory release check "$CI_COMMIT_TAG" --provider gitlab > built.env
    - CANDIDATE="$(sed -n 's/^candidate=//p' built.env)"
    - mcpfactory pipeline promote "$SERVER" --channel "@CHANNEL@" --candidate "${CANDIDATE:?of this tag nothing was built}"
    - mcpfactory publish "$SERVER" --channel "@CHANNEL@"
  after_script:
    - mcpfactory ci pack published "${CI_COMMIT_TAG%-v*}"
  artifacts:
    when: always
    paths: [published]
    expire_in: 14 days

mcpfactory-release-keep:
  stage: .post
  needs: [mcpfactory-release-check, mcpfactory-release-publish]
  extends: .mcpfactory
  rules: *mcpfactory-release-rules
  environment:
    name: mcpfactory-keep
    action: access
  script:
    - git fetch --quiet origin "@BRANCH@" && git checkout --quiet -B mcpfactory-keep FETCH_HEAD
    - RUN="$(sed -n 's/^run=//p' checked.env)"
    - mcpfactory ci fold published --run "$RUN" --server "${CI_COMMIT_TAG%-v*}" --released
@KEEPING@
"""

_BASE: Final = """\
.mcpfactory:
  image: @IMAGE@
  variables:
    GIT_DEPTH: "0"
    MCPFACTORY_ACTOR: $GITLAB_USER_LOGIN
  before_script:
    - @INSTALL@
"""

_KEEPING: Final = """\
    - mcpfactory pipeline verify
    - git config user.name mcpfactory && git config user.email "mcpfactory@$CI_SERVER_HOST"
    - git add pipeline/state pipeline/history
    - 'if git diff --cached --quiet; then exit 0; fi'
    - 'git commit --quiet -m "Pipeline: state and history of this run [skip ci]"'
    - |
      git -c credential.helper= -c credential.helper='!f() { echo username=mcpfactory; echo "password=$MCPFACTORY_PUSH_TOKEN"; }; f' \\
        push --quiet "https://$CI_SERVER_HOST/$CI_PROJECT_PATH.git" "HEAD:@BRANCH@\""""


def gitlab_pipeline(settings: CiSettings) -> str:
    """Return the file that `.gitlab-ci.yml` takes in: `plan`, and the pipeline that it writes."""
    return _filled(_MAIN, settings).replace("@PLACE@", PLACE.as_posix())


def gitlab_shards(groups: Sequence[Sequence[str]], settings: CiSettings, run: str) -> str:
    """Return the pipeline that runs groups of servers, one job each, and folds the results; `run` is the run's id."""
    jobs = [
        f"shard-{number}:\n  extends: .shard\n  variables:\n    SHARD: {json.dumps(str(number))}\n    SERVERS: {json.dumps(' '.join(group))}\n"
        for number, group in enumerate(groups, 1)
    ]
    text = _filled(_SHARDS, settings).replace("@JOBS@\n", "".join(f"{job}\n" for job in jobs))
    return replace_blocks(text, {"RUN": json.dumps(run), "ASSIGNED": json.dumps(json.dumps(matrix(groups)))})


def gitlab_release(settings: CiSettings) -> str:
    """Return the file that `.gitlab-ci.yml` takes in: a release is published when its tag is pushed."""
    return _filled(_RELEASE, settings).replace("@PLACE@", RELEASE_PLACE.as_posix())


def _filled(text: str, settings: CiSettings) -> str:
    blocks = {
        "BASE": _BASE,
        "KEEPING": _KEEPING,
        "BRANCH": settings.branch,
        "CHANNEL": settings.channel,
        "ENVIRONMENT": settings.environment,
        "IMAGE": json.dumps(settings.image or f"python:{settings.python}"),  # a JSON string is a YAML string
        "INSTALL": json.dumps(settings.install),
    }
    return replace_blocks(text, blocks)
