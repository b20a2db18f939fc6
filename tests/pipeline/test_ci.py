"""Changed servers are assigned to jobs, run in clones of their own, and folded into one state."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from mcpfactory_codegen.settings import SettingsError
from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, StateError
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.decisions.restore import restore
from mcpfactory_pipeline.delivery.ci.bundle import pack_run
from mcpfactory_pipeline.delivery.ci.factory_origin import read_ci_settings
from mcpfactory_pipeline.delivery.ci.fold import (
    ShardResult,
    assigned_shard_results,
    changed,
    fold_results,
    matrix,
    named_shard_results,
    split_into_shards,
    summary,
    validate_run_id,
)
from mcpfactory_pipeline.delivery.ci.github import PLACE, github_release_workflow, github_workflow
from mcpfactory_pipeline.delivery.ci.gitlab import gitlab_pipeline, gitlab_release, gitlab_shards
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.plan.plan import BROKEN, RUN, UP_TO_DATE, PlanStep
from mcpfactory_pipeline.run.run import plan_servers, run_pipeline
from mcpfactory_pipeline.state.manifest import recorded_artifacts
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import offered, settings_of
from tests.subtest_table import parametrize_subtests
from tests.system import git

# --- assigning ---


@parametrize_subtests(
    "count, jobs, least, groups",
    [
        (1000, 256, 4, 250),
        (5000, 256, 4, 256),
        (1000, 20, 4, 20),
        (3, 256, 4, 1),
        (9, 256, 4, 2),
        (1, 1, 1, 1),
        (0, 256, 4, 0),
    ],
)
def test_servers_are_assigned_evenly_within_the_providers_limit(count, jobs, least, groups):
    names = [f"s{number}" for number in range(count)]
    assigned = split_into_shards(names, jobs, least)
    assert len(assigned) == groups <= 256
    assert [name for group in assigned for name in group] == names
    sizes = [len(group) for group in assigned]
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert [entry["servers"].split() for entry in matrix(assigned)["include"]] == [list(group) for group in assigned]


def test_the_matrix_of_a_thousand_changed_servers_fits_into_a_jobs_output():
    assigned = matrix(split_into_shards([f"server-with-a-long-name-{n:04}" for n in range(1000)], 256, 4))
    assert len(json.dumps(assigned)) < 1_000_000


def test_only_servers_with_something_to_run_are_assigned():
    steps = [
        PlanStep("a", "x", UP_TO_DATE),
        PlanStep("b", "x", UP_TO_DATE),
        PlanStep("b", "y", RUN),
        PlanStep("b", "z", RUN),
        PlanStep("c", "x", "blocked"),
    ]
    assert changed(steps) == (["b"], [])


@parametrize_subtests("name", ["x --force --jobs 99", "--force", "a;b", "a\nb", "$(id)", "*", "é"])
def test_a_folder_whose_name_is_more_than_a_name_is_assigned_to_no_job_and_the_others_are(name):
    assert changed([PlanStep("a", "x", RUN), PlanStep(name, "x", BROKEN)]) == (["a"], [name])


# --- folding ---


@pytest.fixture
def origin(tmp_path):
    """A repository with four servers, of which none ever ran."""
    space = apply_setup(plan_workspace_setup(tmp_path / "origin"))
    for name in ("a", "b", "c", "d"):
        add_server(space.root, name, outcome="failed" if name == "d" else "passed")
    git(space.root, "add", "-A")
    git(space.root, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "servers")
    return space


RUN_ID = new_id()


def shard(origin, number: int, servers) -> ShardResult:
    """What one job does: a fresh clone, a run of its servers, and what it hands over."""
    folder = origin.root.parent / f"job{number}"
    git(origin.root.parent, "clone", "-q", str(origin.root), str(folder))
    clone = Workspace.find(folder)
    outcome = run_pipeline(clone, servers, stages=STAGES, executor=InProcessExecutor(), jobs=1, run_id=RUN_ID)
    handed = origin.root.parent / "shards" / f"shard-{number}"
    pack_run(clone, handed, outcome.recorded)
    return ShardResult(handed, tuple(servers))


def fold(origin, *shard_results, **options):
    return fold_results(origin, shard_results, RUN_ID, stages=STAGES, **options)


def test_two_clones_run_a_shard_each_and_are_folded_into_a_state_that_verifies(origin):
    assigned = split_into_shards(changed(plan_servers(origin, stages=STAGES))[0], 2, 1)
    assert assigned == [("a", "b"), ("c", "d")]
    for number, group in enumerate(assigned, 1):
        shard(origin, number, group)
    shard_results = assigned_shard_results([origin.root.parent / "shards"], json.dumps(matrix(assigned)))
    folded, refused = fold(origin, *shard_results)
    assert [(one.server, one.passed) for one in folded] == [("a", True), ("b", True), ("c", True), ("d", False)]
    assert (verify(origin), refused) == ([], [])
    for number, group in enumerate(assigned, 1):
        for server in group:
            clone = Store(Workspace.find(origin.root.parent / f"job{number}"))
            assert Store(origin).state_file(server).read_bytes() == clone.state_file(server).read_bytes()
    assert changed(plan_servers(origin, stages=STAGES)) == ([], [])
    assert sum(one.events for one in fold(origin, *shard_results)[0]) == 0, "folding twice adds nothing"
    text = summary(folded)
    assert "4 servers ran, 3 passed, **1 did not**" in text
    assert "| d | test | failed |" in text


def test_what_happened_in_the_workspace_meanwhile_is_kept(origin):
    shard_result = shard(origin, 1, ["a"])
    run_pipeline(origin, ["a"], stages=STAGES, executor=InProcessExecutor(), jobs=1)
    before = len(Store(origin).history("a"))
    ((folded,), _) = fold(origin, shard_result)
    assert len(Store(origin).history("a")) == before + folded.events
    assert folded.events == before
    assert verify(origin) == []


@pytest.fixture
def shard_result(origin):
    """What a job hands over: a server that went through all stages in a clone."""
    return shard(origin, 1, ["a"])


def wheel(space) -> Path:
    state = Store(space).state("a")
    return space.artifacts / "a" / str(state.candidate) / "a-1.0-py3-none-any.whl"


def test_the_bytes_that_a_job_checked_come_along_and_into_the_channel(origin, shard_result):
    ((folded,), _) = fold(origin, shard_result)
    assert wheel(origin).read_bytes() == b"one"
    assert folded.lacking == ()
    known = recorded_artifacts(Store(origin).state("a").stages["test"], origin.artifacts / "a" / "manifests")
    assert folded.files == len(known) + 6, "two more logs, three manifests, and the wheel"
    restored = restore(origin, ["a"], rebuild=False)
    assert [(one.channel, one.outcome) for one in restored] == [("staging", "restored")]
    assert offered(origin, "staging", "a") == [b"one"]
    assert fold(origin, shard_result)[0][0].files == 0, "folding twice brings nothing"


def test_a_server_whose_files_were_changed_after_they_were_recorded_is_not_handed_over(origin, tmp_path):
    folder = origin.root.parent / "job"
    git(origin.root.parent, "clone", "-q", str(origin.root), str(folder))
    clone = Workspace.find(folder)
    outcome = run_pipeline(clone, ["a", "b"], stages=STAGES, executor=InProcessExecutor(), jobs=1)
    wheel(clone).write_bytes(b"another")
    (clone.pipeline / "history" / "b.jsonl").write_text("planted\n")
    with pytest.raises(StateError, match=r"a: .*differs from the checked file"):
        pack_run(clone, tmp_path / "shard-result", outcome.recorded)
    (file,) = (tmp_path / "shard-result" / "history").iterdir()
    assert file.name == "b.jsonl"
    assert "planted" not in file.read_text()


def test_a_folder_that_is_not_there_and_a_matrix_that_is_none_are_refused(tmp_path):
    with pytest.raises(NotFoundError, match="does not exist"):
        named_shard_results([tmp_path / "nowhere"], ["a"])
    with pytest.raises(ConfigError, match="not a valid matrix"):
        assigned_shard_results([tmp_path], "[]")
    with pytest.raises(ConfigError, match="'run-1' is not a valid run id"):
        validate_run_id("run-1")


def test_nothing_that_a_server_says_is_markup_in_the_summary(origin):
    shard_result = shard(origin, 1, ["d"])
    file = shard_result.folder / "history" / "d.jsonl"
    file.write_text(file.read_text().replace("it failed in", "<img src=x> | [a](b) `c`"))
    text = summary(fold(origin, shard_result)[0])
    assert r"&lt;img src=x> \| \[a\](b) \`c\`" in text


def test_a_run_with_nothing_due_says_so():
    assert "Nothing was due" in summary([])


# --- the workflow ---


@pytest.fixture
def written():
    return github_workflow(
        read_ci_settings(settings_of(ci={"branch": "trunk", "install": 'pip install "mcpfactory[dask]" # ours: all'}))
    )


def steps(text):
    return [(name, step) for name, job in yaml.safe_load(text)["jobs"].items() for step in job["steps"]]


def test_every_action_is_pinned_to_a_full_commit(written):
    uses = [step["uses"] for _, step in steps(written) if "uses" in step]
    assert len(uses) >= 10
    assert [one for one in uses if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one)] == []


def test_only_the_job_that_keeps_results_may_write_and_only_on_the_branch(written):
    data = yaml.safe_load(written)
    assert data["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in data["jobs"].items() if "permissions" in job} == {
        "keep": {"contents": "write"}
    }
    assert "refs/heads/trunk" in data["jobs"]["keep"]["if"]
    assert "github.event_name != 'pull_request'" in data["jobs"]["keep"]["if"]
    credentials = {
        name: step["with"]["persist-credentials"] for name, step in steps(written) if "checkout" in step.get("uses", "")
    }
    assert credentials == {"plan": False, "shard": False, "fold": False, "keep": True}


def test_no_script_holds_a_value_from_outside(written):
    scripts = [step["run"] for _, step in steps(written) if "run" in step]
    assert 'pip install "mcpfactory[dask]" # ours: all' in scripts
    assert [script for script in scripts if "${{" in script] == []


@pytest.mark.parametrize("text", [github_workflow, github_release_workflow])
def test_results_go_to_the_branch_or_into_a_pull_request(text):
    def keep(push: str):
        data = yaml.safe_load(text(read_ci_settings(settings_of(ci={"push": push}))))
        job = data["jobs"]["keep"]
        (script,) = [step["run"] for step in job["steps"] if "git commit" in step.get("run", "")]
        tokens = {step["with"]["token"] for step in job["steps"] if "token" in step.get("with", {})}
        assert tokens == {"${{ secrets.MCPFACTORY_PUSH_TOKEN || github.token }}"}
        assert job["environment"] == "mcpfactory-keep", "only this job can read the token"
        return script, job["permissions"]

    script, permissions = keep("branch")
    assert ("git pull --quiet --rebase && git push" in script, permissions) == (True, {"contents": "write"})
    script, permissions = keep("pull-request")
    assert permissions == {"contents": "write", "pull-requests": "write"}
    assert "gh pr create" in script
    assert "[skip ci]" not in script, "the checks of the pull request have to run"


def test_only_the_repository_itself_brings_results_in_a_pull_request():
    def option(push: str, write=github_workflow) -> str:
        return write(read_ci_settings(settings_of(ci={"push": push})))

    assert "RESULTS: --no-results" in option("branch")
    assert "head.repo.full_name == github.repository)) && '--results'" in option("pull-request")
    assert "RESULTS=--no-results\n" in option("branch", gitlab_pipeline)
    assert '"${CI_MERGE_REQUEST_SOURCE_PROJECT_ID:-}" = "$CI_PROJECT_ID"' in option("pull-request", gitlab_pipeline)


def test_a_merge_queue_is_checked_against_the_commit_that_it_was_made_from(written):
    data = yaml.safe_load(written)
    assert "merge_group" in data[True], "YAML reads `on` as true"
    (check,) = [step for _, step in steps(written) if "--summary" in step.get("run", "") and "--against" in step["run"]]
    assert "merge_group.base_sha || 'HEAD^1'" in check["env"]["BASE"]
    (script,) = yaml.safe_load(gitlab_pipeline(read_ci_settings(settings_of())))["mcpfactory-plan"]["script"][2:3]
    assert "${CI_MERGE_REQUEST_TARGET_BRANCH_SHA:-${CI_MERGE_REQUEST_DIFF_BASE_SHA:-}}" in script


UNQUOTED = re.compile(r"'[^']*'|\"\$\([^()]*\)\"|\"[^\"]*\"")


def test_every_value_in_a_script_is_quoted(written):
    scripts = [step["run"] for _, step in steps(written) if "run" in step]
    for settings in (read_ci_settings(settings_of(ci={"push": push})) for push in ("branch", "pull-request")):
        for text in (github_workflow(settings), github_release_workflow(settings)):
            scripts += [step["run"] for _, step in steps(text) if "run" in step]
        for text in (gitlab_pipeline(settings), gitlab_shards([("a",)], settings, "RUN"), gitlab_release(settings)):
            for job in yaml.safe_load(text).values():
                if isinstance(job, dict):
                    keys = ("script", "after_script", "before_script")
                    scripts += [line for key in keys for line in job.get(key, ())]
    assert len(scripts) > 80
    assert [script for script in scripts if "$" in UNQUOTED.sub("", script)] == []


def test_no_mark_of_the_template_is_left(written):
    assert re.findall(r"@[A-Z_]+@", written) == []


def test_a_new_workspace_has_the_workflow_that_would_be_written(tmp_path):
    made = apply_setup(plan_workspace_setup(tmp_path / "new"), git=False)
    assert (made.root / PLACE).read_text() == github_workflow(read_ci_settings(made.settings))


@parametrize_subtests(
    "table, message",
    [
        (3, "ci: must be a table"),
        ({"job": 3}, "unknown field 'job'"),
        ({"jobs": 257}, "ci.jobs: 257 is not valid"),
        ({"push": "pr"}, 'ci.push: "pr" is not valid'),
        ({"servers": 0}, "ci.servers: 0 is not valid"),
        ({"branch": "a b"}, 'ci.branch: "a b" is not valid'),
        ({"branch": "x]\npermissions: write-all"}, 'ci.branch: "x'),
        ({"python": "3.12\n"}, 'ci.python: "3.12'),
        ({"install": "a\nb"}, 'ci.install: "a'),
    ],
)
def test_settings_that_cannot_be_used_are_refused(table, message):
    with pytest.raises(SettingsError, match=re.escape(message)) as caught:
        settings_of(ci=table)
    assert caught.value.hint
