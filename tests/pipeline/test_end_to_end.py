"""The real stages on a real server: build, test, validate, staging, and an installation from the index that staging is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import uv

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.channels.contract import find_contract
from mcpfactory_pipeline.decisions.decision import approve
from mcpfactory_pipeline.decisions.promote import promote
from mcpfactory_pipeline.decisions.restore import restore
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.run.run import plan_servers, run_pipeline
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.conftest import Recorder
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.system import git
from tests.timeouts import TIMEOUT

pytestmark = pytest.mark.xdist_group("end_to_end")

WHEEL = "hello_mcp-0.1.0-py3-none-any.whl"
SDIST = "hello_mcp-0.1.0.tar.gz"
CANARY = "canary-5d1e9b"


def tree(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """A workspace whose one server went all the way, while a token stood in the caller's environment."""
    space = apply_setup(plan_workspace_setup(tmp_path_factory.mktemp("real") / "space"), git=False)
    create_server(space.root / "servers", name="hello", template="minimal")
    before = tree(space.root / "servers")
    recorder = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HELLO_TOKEN", CANARY)
        outcome = run_pipeline(space, reporter=recorder)
    assert outcome.servers == {"hello": "passed"}, [event.to_json() for event in recorder.events]
    assert tree(space.root / "servers") == before, "no stage leaves litter in the source tree"
    return space


@pytest.fixture
def again(staged, tmp_path) -> Workspace:
    """A copy to change; its environment is used again, for the candidate is the same."""
    shutil.copytree(staged.root, tmp_path / "copy", symlinks=True)
    return Workspace.find(tmp_path / "copy")


def test_a_run_of_one_changed_source_adds_at_most_six_short_lines_and_one_without_changes_nothing(again):
    store = Store(again)
    before = store.history_file("hello").read_bytes()
    server = again.root / "servers/hello/src/hello_mcp/server.py"
    server.write_text(server.read_text() + "\n# changed\n")
    assert run_pipeline(again).servers == {"hello": "passed"}
    after = store.history_file("hello").read_bytes()
    added = after.removeprefix(before)
    assert after.startswith(before)
    assert added.count(b"\n") <= 6
    assert len(added) <= 2_700
    view = store.state_file("hello").read_bytes()
    assert run_pipeline(again).ran == 0
    assert (store.history_file("hello").read_bytes(), store.state_file("hello").read_bytes()) == (after, view)


def install(index: Path, target: Path, *packages: str) -> subprocess.CompletedProcess[str]:
    """Installs from a channel as a user would, into a fresh environment; nothing of this checkout is in sight."""
    environ = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    subprocess.run([uv.find_uv_bin(), "venv", "--quiet", str(target)], check=True, cwd=target.parent, env=environ)
    return subprocess.run(
        [uv.find_uv_bin(), "pip", "install", "--python", str(target), "--index", f"file://{index}", *packages],
        cwd=target.parent, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_every_stage_passed_and_the_books_agree(staged):
    state = Store(staged).state("hello")
    assert {name: record.outcome for name, record in state.stages.items()} == dict.fromkeys(
        ("generate", "build", "test", "validate", "staging"), "passed"
    )
    assert state.stages["test"].summary["passed"] > 0
    assert state.stages["test"].summary["failed"] == 0
    assert state.stages["validate"].summary["score"] > 90
    assert state.channels["staging"].candidate == state.candidate
    assert verify(staged) == []


def test_a_second_run_has_nothing_to_do(staged):
    assert {step.verdict for step in plan_servers(staged)} == {"up-to-date"}
    assert run_pipeline(staged).ran == 0


def test_what_is_installed_from_staging_are_the_bytes_that_were_checked(staged, tmp_path):
    index = staged.pipeline / "channels" / "staging" / "simple"
    done = install(index, tmp_path / "fresh", "hello-mcp")
    assert done.returncode == 0, done.stderr
    state = Store(staged).state("hello")
    links = re.findall(r'/([^"/]+)#sha256=(\w+)"', (index / "hello-mcp" / "index.html").read_text())
    assert [name for name, _ in links] == [WHEEL, SDIST]
    assert state.candidates[state.candidate].files == {name: f"sha256:{digest}" for name, digest in links}
    started = subprocess.run(
        [str(tmp_path / "fresh/bin/python"), "-m", "hello_mcp"], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=TIMEOUT, cwd=tmp_path,
    )  # fmt: skip
    assert (started.returncode, started.stdout) == (0, ""), started.stderr


def test_a_channel_with_other_bytes_is_refused_by_the_installer(again, tmp_path):
    channel = again.pipeline / "channels" / "staging"
    (wheel,) = channel.glob(f"files/*/{WHEEL}")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("hello_mcp/evil.py", "x = 1")
    done = install(channel / "simple", tmp_path / "fresh", "hello-mcp")
    assert done.returncode != 0
    assert "hash" in done.stderr.lower()


def test_in_a_fresh_clone_a_channel_is_built_again_from_its_sources_byte_for_byte(staged, again):
    for file in (again.root / "servers" / "hello").rglob("*"):
        os.utime(file, (2_000_000_000, 2_000_000_000))
    shutil.rmtree(again.pipeline / "channels")
    shutil.rmtree(again.artifacts / "hello")
    (found,) = restore(again)
    assert (found.outcome, found.source) == ("rebuilt", "servers/hello")
    (wheel,) = (again.pipeline / "channels" / "staging").glob(f"files/*/{WHEEL}")
    assert wheel.read_bytes() == next((staged.pipeline / "channels/staging").glob(f"files/*/{WHEEL}")).read_bytes()


def test_a_channel_is_built_again_from_the_commit_that_has_its_sources(staged, again):
    git(again.root, "init", "--quiet")
    git(again.root, "add", "servers", "pipeline/state", "pipeline/history", "mcpfactory.toml")
    git(again.root, "commit", "--quiet", "-m", "made")
    package = again.root / "servers/hello/src/hello_mcp/__init__.py"
    package.write_text(package.read_text() + "\n# more\n")
    git(again.root, "commit", "--quiet", "-am", "more")
    shutil.rmtree(again.artifacts / "hello")
    shutil.rmtree(again.pipeline / "channels")
    (found,) = restore(again)
    assert (found.outcome, found.source[:7]) == ("rebuilt", "commit "), found


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_installers_hold_what_they_get_from_production_against_the_hash_in_the_state(again, tmp_path, installer):
    approve(again, "hello", "production", reason="it is good")
    promote(again, "hello", "production")
    state = Store(again).state("hello")
    digest = state.candidates[state.offered("production")].files[WHEEL]
    programs = {"uv": [uv.find_uv_bin(), "pip"], "pip": [sys.executable, "-m", "pip", "--disable-pip-version-check"]}
    index = f"file://{again.pipeline}/channels/production/simple"

    def get(wanted: str, target: Path) -> subprocess.CompletedProcess[str]:
        requirements = tmp_path / "requirements.txt"
        requirements.write_text(f"hello-mcp==0.1.0 --hash={wanted}\n")
        return subprocess.run(
            [*programs[installer], "install", "--index-url", index, "--require-hashes", "--no-deps", "--no-cache-dir",
             "--only-binary", ":all:", "--target", str(target), "-r", str(requirements)],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip

    done = get(digest, tmp_path / "right")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(again.artifacts / "hello" / str(state.candidate) / WHEEL) as wheel:
        for name in wheel.namelist():
            if name.startswith("hello_mcp/"):
                assert (tmp_path / "right" / name).read_bytes() == wheel.read(name)
    wrong = get("sha256:" + "0" * 64, tmp_path / "wrong")
    assert wrong.returncode != 0
    assert "hash" in (wrong.stdout + wrong.stderr).lower()


def test_no_secret_of_the_caller_gets_to_the_tests_or_into_any_file(staged):
    for file in staged.pipeline.rglob("*"):
        if file.is_file() and "environment" not in file.parts:
            assert CANARY.encode() not in file.read_bytes(), file


TESTS = {
    "the wheel is tested, and no token is in sight": (
        "import os, hello_mcp\n"
        "def test_it():\n    assert 'environment' in hello_mcp.__file__ and 'site-packages' in hello_mcp.__file__\n"
        "def test_environ():\n    assert not [k for k in os.environ if 'TOKEN' in k or k == 'PYTHONPATH']",
        "passed", "2 passed",
    ),
    "no files at all": (None, "failed", "there are no tests"),
}  # fmt: skip


@pytest.mark.parametrize("name", TESTS)
def test_the_servers_own_tests_are_judged(again, name, monkeypatch):
    text, outcome, message = TESTS[name]
    monkeypatch.setenv("HELLO_TOKEN", CANARY)
    tests = again.root / "servers" / "hello" / "tests"
    shutil.rmtree(tests)
    tests.mkdir()
    if text is not None:
        (tests / "test_it.py").write_text(text + "\n")
    run_pipeline(again, until="test", executor=None if outcome == "passed" else InProcessExecutor())
    record = Store(again).state("hello").stages["test"]
    assert (record.outcome, record.message[: len(message)]) == (outcome, message)


@pytest.mark.parametrize(("words", "outcome"), [(3, "failed")])
def test_declared_tests_are_held_against_the_wheel_without_any_python_beside_them(again, words, outcome):
    tests = again.root / "servers" / "hello" / "tests"
    shutil.rmtree(tests)
    tests.mkdir()
    expected = f"expect: [{{path: $.words, equals: {words}}}]"
    (tests / "measure.yaml").write_text(
        f"tests: [{{tool: measure_text, arguments: {{text: Two words.}}, {expected}}}]\n"
    )
    run_pipeline(again, until="test", executor=InProcessExecutor())
    record = Store(again).state("hello").stages["test"]
    assert (record.outcome, record.summary["declared"]) == (outcome, 1), record.message


def test_an_invalid_declared_test_is_a_failure_and_is_not_tried_again(again):
    file = again.root / "servers" / "hello" / "tests" / "measure.yaml"
    file.write_text("tests: [{tool: measure_text, expect: [{equals: 3}]}]\n")
    run_pipeline(again, until="test", executor=InProcessExecutor())
    record = Store(again).state("hello").stages["test"]
    assert (record.outcome, "has no path" in record.message) == ("failed", True)


def test_a_candidate_keeps_its_contract_and_is_measured_against_itself(staged):
    state = Store(staged).state("hello")
    kept = find_contract(staged, state, "staging")
    assert [tool["name"] for tool in kept.tools] == ["measure_text"]
    summary = state.stages["validate"].summary
    assert summary["contract"] == {state.candidate: 0}
    assert summary["measured"]["start_ms"] > 0


def test_a_package_that_does_not_build_failed_and_is_not_tried_again(again):
    project = again.root / "servers" / "hello" / "pyproject.toml"
    project.write_text(project.read_text().replace("[project]", "[project]\nlicense = 3", 1))
    recorder = Recorder()
    assert run_pipeline(again, reporter=recorder, executor=InProcessExecutor()).servers == {"hello": "failed"}
    record = Store(again).state("hello").stages["build"]
    assert record.outcome == "failed"
    assert "does not build" in record.message
    assert str(again.root) not in record.message
    assert Store(again).state("hello").channels["staging"].version == "0.1.0", "what is in staging stays there"


REWRITES = """
import pathlib
import hello_mcp
try:
    (pathlib.Path(hello_mcp.__file__).parent / "__main__.py").write_text({good!r})
except OSError:
    pass
"""


def test_a_server_that_breaks_the_protocol_does_not_get_to_staging_though_its_tests_mend_what_is_installed(again):
    package = again.root / "servers" / "hello" / "src" / "hello_mcp"
    main = package / "__main__.py"
    (again.root / "servers/hello/tests/conftest.py").write_text(REWRITES.format(good=main.read_text()))
    main.write_text('print("hello, I am not MCP", flush=True)\n' + main.read_text())
    before = Store(again).state("hello").candidate
    assert run_pipeline(again, executor=InProcessExecutor()).servers == {"hello": "failed"}
    state = Store(again).state("hello")
    assert state.candidate != before
    assert (state.stages["validate"].outcome, state.channels["staging"].candidate) == ("failed", before)
    assert state.stages["test"].summary["passed"] > 0, "its tests do not start it, and say nothing of it"


BODY = {"type": "object", "required": ["data"], "properties": {"data": {"type": "object", "properties": {"x": {}}}}}
GONE = {"type": "object", "required": ["gone"], "properties": {"gone": {"type": ["string", "null"]}}}
NARROWED = {"allOf": [GONE, {"properties": {"gone": {"type": "null"}}}]}


def _posts(media: str) -> dict[str, Any]:
    answer = {"description": "ok", "content": {"application/json": {"schema": NARROWED}}}
    return {"post": {"requestBody": {"content": {media: {"schema": BODY}}}, "responses": {"200": answer}}}


def test_unusual_but_sound_documents_reach_staging(tmp_path):
    """A call of the base address itself, HEAD as the only reading method, bodies that are not JSON, a narrowed member."""
    paths = {f"/{media[-3:]}": _posts(media) for media in ("application/jwt", "text/csv", "application/x-ndjson")}
    paths["/health"] = {"head": {"responses": {"200": {"description": "ok"}}}}
    document = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "https://t.example"}]}
    (tmp_path / "api.json").write_text(json.dumps(document | {"paths": paths}))
    space = apply_setup(plan_workspace_setup(tmp_path / "space"), git=False)
    create_server(space.root / "servers", name="odd", source=str(tmp_path / "api.json"))
    recorder = Recorder()
    outcome = run_pipeline(space, reporter=recorder, executor=InProcessExecutor())
    assert outcome.servers == {"odd": "passed"}, [event.to_json() for event in recorder.events]
