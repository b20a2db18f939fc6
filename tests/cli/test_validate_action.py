"""The action and the hook that validate servers of other repositories: their steps run here, with real servers."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli import sums_server
from tests.cli.conftest import ROOT
from tests.pipeline.checks.code_scanning import upload_faults
from tests.skip_conditions import needs

pytestmark = needs("posix")
ACTION = ".github/actions/validate"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a server that works, one that was not shown to work, and one that breaks the protocol."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "cases.json").write_text(json.dumps(sums_server.CASES))
    shutil.copy(sums_server.__file__, tmp_path / "good.py")
    failing = Path(sums_server.__file__).read_text().replace("return a + b", "raise ValueError('no such numbers')")
    (tmp_path / "shy.py").write_text(failing)
    (tmp_path / "bad.py").write_text("print('hello')\n")
    return tmp_path


def execute(command: list[str], folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    programs = Path(sys.executable).parent
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, cwd=folder, env={**kept, "PATH": path, **environ}, capture_output=True, text=True, check=False
    )


def server(name: str) -> str:
    return shlex.join([sys.executable, f"{name}.py"])


def run_action(folder: Path, **given: str) -> tuple[int, Any, str]:
    """Run the shell steps of the action as the runner does; return the exit code, the SARIF log and the output."""
    action = yaml.safe_load((ROOT / ACTION / "action.yml").read_text("utf-8"))
    inputs = {name: given.pop(name.replace("-", "_"), one.get("default", "")) for name, one in action["inputs"].items()}
    assert not given
    (step,) = [one for one in action["runs"]["steps"] if "run" in one]
    environ = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) }}", lambda at: inputs[at[1]], text)
        for name, text in step["env"].items()
    }
    assert "${{" not in step["run"] + "".join(environ.values())
    script = folder / "step.sh"
    script.write_text(step["run"])
    done = execute(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
        folder,
        {**environ, "GITHUB_ACTION_PATH": str(ROOT / ACTION)},
    )
    written = folder / inputs["sarif"]
    return done.returncode, json.loads(written.read_text()) if written.exists() else None, done.stdout + done.stderr


def test_the_action_passes_a_server_that_works_and_writes_sarif_that_can_be_uploaded(project):
    code, log, output = run_action(project, command=server("good"), cases="cases.json", sarif="out/mcp.sarif")
    assert code == 0, output
    assert output.startswith("::stop-commands::")
    assert len(output.split("\n", 1)[0]) == len("::stop-commands::") + 32
    assert upload_faults(log, project) == []


@pytest.mark.parametrize(
    ("name", "fail_on", "code"),
    [("shy", "refused", 0), ("shy", "not-shown", 7), ("bad", "refused", 1), ("bad", "nothing", 0)],
)
def test_the_action_fails_for_the_verdicts_that_it_is_told(project, name, fail_on, code):
    found, log, output = run_action(project, command=server(name), fail_on=fail_on, options="--timeout 10")
    assert found == code, output
    assert bool(log["runs"][0]["results"]) is (name == "bad")
    assert upload_faults(log, project) == []


def test_the_action_fails_if_its_inputs_are_wrong_whatever_may_fail(project):
    code, log, output = run_action(project, fail_on="nothing")
    assert (code, log) == (2, None)
    assert "exactly one of" in output


def test_the_action_uploads_what_it_writes_and_pins_what_it_uses():
    steps = yaml.safe_load((ROOT / ACTION / "action.yml").read_text("utf-8"))["runs"]["steps"]
    assert steps[-1]["with"]["sarif_file"] == "${{ inputs.sarif }}"
    used = re.findall(r"uses: (.+)", (ROOT / ACTION / "action.yml").read_text("utf-8"))
    assert [one for one in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", one)] == []


def test_the_hook_runs_its_entry_with_the_arguments_of_a_user(project):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert (hook["language"], hook["pass_filenames"]) == ("script", False)
    entry = str(ROOT / hook["entry"])  # pre-commit joins the entry of a script with the folder of its clone
    good = execute([entry, "--command", server("good"), "--cases", "cases.json"], project, {})
    assert good.returncode == 0, good.stdout + good.stderr
    assert good.stdout.startswith("PASSED")
    bad = execute([entry, "--command", server("bad"), "--timeout", "10"], project, {})
    assert bad.returncode == 1
