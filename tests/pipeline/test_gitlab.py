"""The pipelines for GitLab: shards as jobs of a second pipeline, secrets by environment, nothing from outside in a script."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest
import yaml

from mcpfactory_pipeline.delivery.ci.factory_origin import read_ci_settings
from mcpfactory_pipeline.delivery.ci.fold import matrix
from mcpfactory_pipeline.delivery.ci.gitlab import gitlab_pipeline, gitlab_release, gitlab_shards
from tests.pipeline.staged_workspace import settings_of

SETTINGS = read_ci_settings(
    settings_of(ci={"branch": "trunk", "channel": "stable", "environment": "guarded", "image": "ours@sha256:00"})
)
GROUPS = (("books", "tea"), ("notes",))
RUN = "01JZ0000000000000000000000"
TEXTS = (
    gitlab_pipeline(SETTINGS),
    gitlab_shards(GROUPS, SETTINGS, RUN),
    gitlab_shards((), SETTINGS, RUN),
    gitlab_release(SETTINGS),
)


class Strict(yaml.SafeLoader):
    """Refuses a key that stands twice, of which GitLab would take the last without a word."""


def _mapping(loader: Strict, node: yaml.MappingNode) -> dict[object, object]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    assert len(keys) == len(set(keys)), keys
    return loader.construct_mapping(node, deep=True)


Strict.add_constructor("tag:yaml.org,2002:map", _mapping)


def jobs(text: str) -> dict[str, dict]:
    data = yaml.load(text, Strict)
    return {
        name: job for name, job in data.items() if isinstance(job, dict) and name not in {"workflow", ".mcpfactory"}
    }


@pytest.mark.parametrize("text", TEXTS)
def test_every_script_is_one_that_a_shell_reads_and_holds_no_mark(text):
    assert re.findall(r"@[A-Z_]+@", text) == []
    for name, job in jobs(text).items():
        lines = [*job.get("script", ()), *job.get("after_script", ())]
        assert lines or "trigger" in job or "extends" in job, name
        subprocess.run(["bash", "-n"], input="\n".join(lines), text=True, check=True)


def test_there_is_a_job_for_each_group_and_one_that_folds_even_when_some_failed():
    made = jobs(gitlab_shards(GROUPS, SETTINGS, RUN))
    assert {name: job["variables"] for name, job in made.items() if name.startswith("shard-")} == {
        "shard-1": {"SHARD": "1", "SERVERS": "books tea"},
        "shard-2": {"SHARD": "2", "SERVERS": "notes"},
    }
    assert made["fold"]["when"] == "always"
    assert (
        made["fold"]["variables"] == made["keep"]["variables"] == {"RUN": RUN, "ASSIGNED": json.dumps(matrix(GROUPS))}
    )
    assert made[".shard"]["artifacts"] == {"when": "always", "paths": ["shards/shard-$SHARD"], "expire_in": "14 days"}
    assert [name for name in jobs(gitlab_shards((), SETTINGS, RUN)) if name.startswith("shard-")] == []


def test_results_are_kept_on_the_branch_only_and_each_secret_is_of_one_job():
    made = {**jobs(gitlab_shards(GROUPS, SETTINGS, RUN)), **jobs(gitlab_release(SETTINGS))}
    assert made["keep"]["rules"] == [{"if": '$CI_COMMIT_BRANCH == "trunk"'}]
    assert {name: job["environment"] for name, job in made.items() if "environment" in job} == {
        "keep": {"name": "mcpfactory-keep", "action": "access"},
        "mcpfactory-release-keep": {"name": "mcpfactory-keep", "action": "access"},
        "mcpfactory-release-publish": {"name": "guarded"},
    }
    pushing = {name for name, job in made.items() if "MCPFACTORY_PUSH_TOKEN" in str(job.get("script"))}
    assert pushing == {"keep", "mcpfactory-release-keep"}
    running = {name for name, job in made.items() if "mcpfactory ci run" in str(job.get("script"))}
    assert running == {".shard", "mcpfactory-release-run"}, "what runs a server's code has no environment"


def test_a_release_is_published_from_its_tag_as_the_candidate_that_ran():
    made = jobs(gitlab_release(SETTINGS))
    rules = {str(job["rules"]) for job in made.values()}
    assert rules == {str([{"if": r"$CI_COMMIT_TAG =~ /^.+-v[0-9]+\.[0-9]+\.[0-9]+$/"}])}
    script = made["mcpfactory-release-publish"]["script"]
    assert script[-2:] == [
        'mcpfactory pipeline promote "$SERVER" --channel "stable" --candidate "${CANDIDATE:?of this tag nothing was built}"',
        'mcpfactory publish "$SERVER" --channel "stable"',
    ]
    assert (
        made["mcpfactory-release-check"]["script"][2]
        == 'mcpfactory release check "$CI_COMMIT_TAG" --branch FETCH_HEAD --provider gitlab > checked.env'
    )


@pytest.mark.parametrize(("built", "did"), [("c1", "promoted c1 of books, published books"), ("", "")])
def test_server_run_and_candidate_are_said_by_jobs_in_which_no_code_of_a_server_ran(tmp_path, built, did):
    """The script, run by a shell with programs that only say what they were asked."""
    script = jobs(gitlab_release(SETTINGS))["mcpfactory-release-publish"]["script"]
    (tmp_path / "checked.env").write_text(f"server=books\nrun={RUN}\n")
    (tmp_path / "built.env").write_text("server=tea\ncandidate=c9\nrun=none\n")
    said = f"""set -e
git() {{ :; }}
mcpfactory() {{ case "$1 $2" in
  "pipeline promote") printf 'promoted %s of %s, ' "$7" "$3";; publish*) printf 'published %s' "$2";;
  "release check") echo candidate={built};; "ci fold") [ "$*" = "ci fold built --run {RUN} --server books --branch FETCH_HEAD" ];;
esac; }}
"""
    done = subprocess.run(
        ["bash"], input=said + "\n".join(script), text=True, check=False, capture_output=True, cwd=tmp_path,
        env={"CI_COMMIT_TAG": "books-v1.0.0", "PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert (done.stdout, done.returncode == 0) == (did, bool(did)), done.stderr
