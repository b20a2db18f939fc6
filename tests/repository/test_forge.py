"""What the forge reads of this repository: workflows, issue forms, the form of a pull request."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from mcpfactory_pipeline.delivery.ci.github import ACTIONS


@pytest.fixture(scope="module")
def forge(root) -> dict[str, Any]:
    folder = root / ".github"
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*.yml")}
    assert "workflows/ci.yml" in files
    return {name: yaml.safe_load(file.read_text(encoding="utf-8")) for name, file in files.items()}


def test_the_workflow_runs_what_a_person_runs_on_the_oldest_python_and_a_newer_one(forge, root):
    workflow = forge["workflows/ci.yml"]
    assert {"push", "pull_request"} <= set(workflow[True]), "YAML 1.1 reads `on` as true"
    assert workflow["permissions"] == {"contents": "read"}
    test = workflow["jobs"]["test"]
    assert {"run": ".ci/run"} in test["steps"]
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (root / "factory/runtime/pyproject.toml").read_text("utf-8"))
    assert oldest is not None
    assert test["strategy"]["matrix"]["python"][0] == oldest[1]
    assert len(test["strategy"]["matrix"]["python"]) > 1
    assert {"run": "make docs"} in workflow["jobs"]["docs"]["steps"]
    assert (root / ".ci/run").stat().st_mode & 0o100


def test_shards_run_every_folder_of_tests(forge, root):
    shards = forge["workflows/ci.yml"]["jobs"]["test-all"]["strategy"]["matrix"]["tests"]
    folders = {
        f"tests/{file.parent.relative_to(root / 'tests').parts[0]}" for file in root.glob("tests/*/**/test_*.py")
    }
    named = [folder for shard in shards for folder in shard.split()]
    assert sorted(named) == sorted(folders - {"tests/repository"})  # `make lint` runs that


def test_every_action_is_pinned_by_the_commit_that_generated_workflows_use(root):
    texts = [file.read_text(encoding="utf-8") for file in (root / ".github/workflows").glob("*.yml")]
    used = [one for text in texts for one in re.findall(r"uses: (.+)", text)]
    assert len(used) > 7
    assert [one for one in used if one not in ACTIONS.values()] == []


def test_a_release_is_built_from_its_tag_and_attested_by_a_job_that_may_write_nothing_else(forge):
    workflow = forge["workflows/release.yml"]
    assert workflow[True] == {"push": {"tags": ["mcpfactory-v[0-9]+.[0-9]+.[0-9]+"]}}
    assert workflow["permissions"] == {}
    (job,) = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "read", "id-token": "write", "attestations": "write"}
    assert {"run": "make sbom"} in job["steps"]
    (attested,) = [step["with"]["subject-path"].split() for step in job["steps"] if "attest" in step.get("uses", "")]
    assert attested == ["dist/*.whl", "dist/*.tar.gz", "dist/*.cdx.json"]


def test_every_issue_form_has_what_the_forge_demands(forge):
    forms = {name: form for name, form in forge.items() if name.startswith("ISSUE_TEMPLATE/") and "config" not in name}
    assert len(forms) >= 2
    for name, form in forms.items():
        assert {"name", "description", "body"} <= set(form), name
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in fields), name
        assert len({field["id"] for field in fields}) == len(fields), name
