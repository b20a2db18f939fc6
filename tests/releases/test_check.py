"""What a tag must be before anything of it runs in CI, and what the workflow that publishes it may do."""

from __future__ import annotations

import re

import pytest
import yaml

from mcpfactory_pipeline.base.errors import NotFoundError, ReleaseError
from mcpfactory_pipeline.delivery.ci.factory_origin import read_ci_settings
from mcpfactory_pipeline.delivery.ci.github import github_release_workflow
from mcpfactory_pipeline.delivery.releases.package_group import check_release_tag
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.staged_workspace import settings_of


def test_a_tag_that_is_checked_out_and_on_the_branch_may_be_published(space):
    found = check_release_tag(space.workspace, "books-v1.0.0", branch="main")
    assert (found.server, found.version, found.candidate) == ("books", "1.0.0", "")
    assert found.commit == space.git("rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("words", "tag", "message"),
    [
        ((), "v1.0.0", "is not a valid release tag"),
        ((), "books-v1.0.0\nx=y", "is not a valid release tag"),
        ((), "books-v9.9.9", "books-v9.9.9 does not exist"),
        (("commit", "-q", "--allow-empty", "-m", "more"), "books-v1.0.0", "not checked out"),
        (("tag", "books-v2.0.0"), "books-v2.0.0", "does not match the version of its sources, 1.0.0"),
    ],
)
def test_any_other_tag_is_refused(space, words, tag, message):
    if words:
        space.git(*words)
    with pytest.raises(ReleaseError, match=message) as caught:
        check_release_tag(space.workspace, tag)
    assert (caught.value.code, bool(caught.value.hint)) == ("tag", True)


def test_a_tag_that_the_branch_does_not_contain_and_one_of_no_server_are_refused(space):
    space.git("checkout", "-qb", "side")
    (space.root / "servers/books/tools.txt").write_text("find:\n")
    space.commit()
    space.apply()
    check_release_tag(Workspace.find(space.root), "books-v2.0.0", branch="side")
    for branch in ("main", "nowhere"):
        with pytest.raises(ReleaseError, match=f"{branch} does not contain books-v2.0.0"):
            check_release_tag(Workspace.find(space.root), "books-v2.0.0", branch=branch)
    space.git("tag", "nobody-v1.0.0")
    with pytest.raises(NotFoundError):
        check_release_tag(space.workspace, "nobody-v1.0.0")


# --- the workflow ---


@pytest.fixture(scope="module")
def jobs():
    settings = read_ci_settings(settings_of(ci={"branch": "trunk", "channel": "stable", "environment": "guarded"}))
    data = yaml.safe_load(github_release_workflow(settings))
    assert data["permissions"] == {}
    assert data[True] == {"push": {"tags": ["*-v[0-9]+.[0-9]+.[0-9]+"]}}, "YAML reads `on` as true"
    return data["jobs"]


def scripts(job) -> str:
    return "\n".join(step["run"] for step in job["steps"] if "run" in step)


def test_each_job_may_do_what_it_must_and_no_more(jobs):
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "check": {"contents": "read"},
        "run": {"contents": "read"},
        "publish": {"contents": "read", "id-token": "write", "attestations": "write"},
        "keep": {"contents": "write"},
    }
    assert {name for name, job in jobs.items() if "secrets." in str(job)} == {"publish", "keep"}
    environments = {name: job["environment"] for name, job in jobs.items() if "environment" in job}
    assert environments == {"publish": "guarded", "keep": "mcpfactory-keep"}
    assert set(re.findall(r"secrets\.\w+", str(jobs["keep"]))) == {"secrets.MCPFACTORY_PUSH_TOKEN"}
    kept = {
        name: [s["with"]["persist-credentials"] for s in job["steps"] if "checkout" in s.get("uses", "")]
        for name, job in jobs.items()
    }
    assert kept == {"check": [False], "run": [False], "publish": [False], "keep": [True]}


def test_nothing_of_a_server_runs_where_the_secrets_are_and_nothing_runs_before_the_tag_was_checked(jobs):
    assert "mcpfactory ci run" in scripts(jobs["run"])
    assert jobs["run"]["needs"] == "check"
    assert '--branch "origin/trunk"' in scripts(jobs["check"])
    words = [
        line.strip()
        for line in scripts(jobs["publish"]).splitlines()
        if "mcpfactory" in line and "pip install" not in line
    ]
    assert words == [
        'mcpfactory ci fold built --run "$RUN" --server "$SERVER" --branch "origin/trunk"',
        'mcpfactory release check "$TAG" --provider github >> "$GITHUB_OUTPUT"',
        'mcpfactory pipeline promote "$SERVER" --channel "stable" --candidate "${CANDIDATE:?of this tag nothing was built}"',
        'mcpfactory publish "$SERVER" --channel "stable"',
        'mcpfactory ci pack published "$SERVER"',
    ]


def test_every_action_is_pinned_and_no_script_holds_a_value_from_outside(jobs):
    steps = [step for job in jobs.values() for step in job["steps"]]
    uses = [step["uses"] for step in steps if "uses" in step]
    assert len(uses) >= 10
    assert [one for one in uses if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one)] == []
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []
    assert re.findall(r"@[A-Z_]+@", github_release_workflow(read_ci_settings(settings_of()))) == []
