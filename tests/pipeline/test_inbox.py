"""What waits for a person: the worst first, since when, and a command that fits; and drift, with what it means."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from mcpfactory_pipeline.channels.channel import copy_files_into_channel
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.views.drift import KINDS as DRIFTS
from mcpfactory_pipeline.views.inbox import KINDS, next_commands, read_inbox
from mcpfactory_pipeline.views.status import status
from tests.loopback_server import LoopbackHandler, serving
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.staged_workspace import configured
from tests.timeouts import TIMEOUT


@pytest.fixture
def inbox(workspace):
    def call(*names: str, **options):
        return read_inbox(type(workspace).find(workspace.root), names, **{"stages": STAGES, **options})

    return call


def kinds(items) -> list[tuple[str, str, str]]:
    return [(item.kind, item.server, item.about) for item in items]


def test_a_candidate_in_staging_waits_for_its_approval_and_then_to_be_promoted(workspace, run, inbox):
    add_server(workspace.root, "books")
    run("books")
    later = datetime.now(UTC) + timedelta(hours=3, minutes=5)
    (item,) = inbox(clock=lambda: later)
    assert (item.kind, item.server, item.about) == ("approval", "books", "production")
    assert "1 of 1 approval missing" in item.message
    assert 3 * 3600 < item.waited < 3 * 3600 + 600
    candidate = Store(workspace).state("books").candidate
    assert item.command == f"mcpfactory pipeline approve books --channel production --candidate {candidate}"
    decision.approve(workspace, "books", "production", stages=STAGES)
    (item,) = inbox()
    assert (item.kind, item.command) == ("ready", "mcpfactory pipeline promote books --channel production")
    promote(workspace, "books", "production", stages=STAGES)
    assert inbox() == []


def test_what_only_needs_time_waits_for_nobody(workspace, run, inbox):
    configured(
        workspace,
        '[[pipeline.channels]]\nname = "staging"\n[[pipeline.channels]]\nname = "production"\nfrom = "staging"\nsoak = "1h"\n',
    )
    add_server(workspace.root, "books")
    run("books")
    assert inbox() == []
    assert kinds(inbox(clock=lambda: datetime.now(UTC) + timedelta(hours=2))) == [("ready", "books", "production")]


def test_a_rejected_candidate_waits_for_nobody_and_a_closed_gate_does(workspace, run, inbox):
    add_server(workspace.root, "books")
    run("books")
    decision.reject(workspace, "books", "production", reason="no", stages=STAGES)
    assert inbox() == []
    add_server(workspace.root, "notes")
    run("notes")
    gated = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\ngates = { min_tests = 3 }\n'
    configured(workspace, '[[pipeline.channels]]\nname = "staging"\n' + gated)
    (item,) = inbox()
    assert (item.kind, item.server, item.command) == ("gate", "notes", "add tests to servers/notes/tests/")


def test_the_worst_comes_first_and_of_the_same_kind_the_oldest(workspace, run, inbox):
    for name, outcome in (
        ("held", "passed"),
        ("new-failure", "failed"),
        ("broken", "broken"),
        ("unclear", "inconclusive"),
    ):
        add_server(workspace.root, name, outcome=outcome)
    add_server(workspace.root, "old-failure", outcome="failed")
    run("old-failure")
    run("held", "new-failure", "broken", "unclear")
    age = Store(workspace, lambda: datetime.now(UTC) - timedelta(days=9))
    with age.transaction("old-failure") as transaction:
        record = next(e for e in reversed(transaction.events) if e.get("stage") == "test")
        facts = {key: record[key] for key in record if key not in {"id", "at", "actor", "event"}}
        transaction.append("stage.finished", **{**facts, "outcome": "passed"})
        transaction.append("stage.finished", **facts)
    add_server(workspace.root, "fresh")
    add_server(workspace.root, "corrupt")
    run("corrupt", until="build")
    Store(workspace).state_file("corrupt").write_text("[]")
    decision.hold(workspace, "held", "production", reason="audit", stages=STAGES)
    found = inbox()
    assert kinds(found) == [
        ("problem", "corrupt", "files"),
        ("failed", "old-failure", "test"),
        ("failed", "new-failure", "test"),
        ("errored", "broken", "test"),
        ("inconclusive", "unclear", "test"),
        ("hold", "held", "production"),
        ("never", "fresh", "build"),
    ]
    assert found[1].waited > 9 * 86400 - 60
    assert found[1].command == "mcpfactory pipeline history old-failure test"
    assert found[3].command == "mcpfactory pipeline run broken"
    assert "hint: mend it" in found[3].message
    assert found[5].message == "production is held by tester: audit"
    assert next_commands(found)[1:] == [
        "mcpfactory pipeline history old-failure test",
        "mcpfactory pipeline history new-failure test",
    ]
    assert [item.kind for item in found] == sorted((item.kind for item in found), key=KINDS.index)
    assert json.loads(json.dumps([item.to_json() for item in found]))[1]["server"] == "old-failure"


def judge(inputs: StageInputs) -> StageOutputs:
    findings = [
        {"rule": "SOFT-1", "message": "a small thing", "gate": False, "severity": 5},
        {"rule": "GATE-7", "message": "it leaks", "gate": True, "severity": 3},
    ]
    inputs.keep.mkdir(parents=True, exist_ok=True)
    (inputs.keep / "report.json").write_text(json.dumps({"findings": findings}))
    return StageOutputs("failed", "score 40, 2 findings", {"score": 40})


JUDGE = Stage("validate", ("build",), ("candidate",), ("checks",), 1, f"{__name__}:judge", timeout=TIMEOUT, check=True)


def test_a_failed_validation_says_its_worst_finding(workspace, run, inbox):
    add_server(workspace.root, "books")
    stages = (STAGES[0], JUDGE, replace(STAGES[2], needs=("validate",)))
    run("books", stages=stages)
    (item,) = inbox(stages=stages)
    assert item.message == "validate failed: score 40, 2 findings; first: GATE-7 it leaks"
    assert item.command == "mcpfactory validate books"


def test_a_waiver_that_ends_soon_or_has_ended_waits_with_what_it_means(workspace, run, inbox):
    folder = add_server(workspace.root, "books")
    run("books")
    text = '[[waivers]]\nrule = "descriptions.arguments"\nperson = "Ada"\nreason = "old clients"\nuntil = 2030-03-01\n'
    (folder / "waivers.toml").write_text(text)

    def told(day: int, month: int = 2) -> list[tuple[str, str]]:
        items = inbox(clock=lambda: datetime(2030, month, day, tzinfo=UTC))
        return [(item.message, item.command) for item in items if item.kind == "waiver"]

    assert told(10) == []
    ((message, command),) = told(20)
    assert message.startswith(
        "the waiver of descriptions.arguments by Ada (old clients) ends in 9 days: what it excused counts again"
    )
    assert command.startswith("mcpfactory waive descriptions.arguments --server books ")
    assert "has ended" in told(2, month=3)[0][0]


def test_a_retired_server_waits_for_nobody(workspace, run, inbox):
    add_server(workspace.root, "books", outcome="failed")
    run("books")
    decision.retire(workspace, "books", reason="gone")
    assert inbox() == []
    assert status(workspace)[0]["drift"] == []


def test_without_anything_waiting_the_usual_commands_come_next():
    assert next_commands([]) == ["mcpfactory pipeline status", "mcpfactory dashboard"], "no run where none is due"


# --- drift ---

GENERATE = Stage("generate", (), ("document", "generated", "runtime"), (), 1, "builtins:print")


@pytest.fixture
def drifting(workspace):
    """A server with a document, a machine-owned file and its lock, as a run left it; gives its folder and what drifted."""
    folder = add_server(workspace.root, "books")
    config = folder / "mcpfactory.toml"
    config.write_text(config.read_text() + '[api]\ndocument = "api/openapi.json"\nsource = "http://127.0.0.1:9/x"\n')
    (folder / "api").mkdir()
    (folder / "api" / "openapi.json").write_text("{}")
    made = folder / "src" / "p" / "_generated" / "api.py"
    made.parent.mkdir(parents=True)
    made.write_text("x = 1\n")
    (folder / ".mcpfactory").mkdir()
    entry = {"owner": "machine", "sha256": hashlib.sha256(b"x = 1\n").hexdigest()}
    (folder / ".mcpfactory" / "lock.json").write_text(
        json.dumps({"lock": 1, "files": {"src/p/_generated/api.py": entry}})
    )
    from mcpfactory_pipeline.plan.fingerprint import InputReader, read_stage_inputs
    from mcpfactory_pipeline.views.drift import find_drift

    def now():
        state = Store(workspace).state("books")
        return read_stage_inputs((GENERATE,), InputReader(workspace.server("books"), state)), state

    with Store(workspace).transaction("books") as transaction:
        inputs = now()[0]["generate"]
        transaction.append(
            "stage.finished",
            stage="generate",
            run="r",
            outcome="passed",
            seconds=1.0,
            inputs=inputs,
            summary={"tools": 3},
        )

    def drift(**options):
        inputs, state = now()
        return find_drift(workspace, workspace.server("books"), state, inputs, **options)

    return folder, drift


def test_a_server_that_is_as_its_run_left_it_has_not_drifted(drifting):
    _, drift = drifting
    assert drift() == []


def test_a_document_that_changed_or_went_away_is_drift(drifting):
    folder, drift = drifting
    (folder / "api" / "openapi.json").write_text('{"a": 1}')
    (found,) = drift()
    assert (found.kind, found.command) == ("document", "mcpfactory pipeline run books")
    (folder / "api" / "openapi.json").unlink()
    assert [entry.message for entry in drift()] == ["the API document is gone"]


def test_after_update_the_document_that_changed_is_no_drift(drifting):
    folder, drift = drifting
    (folder / "api" / "openapi.json").write_text('{"a": 1}')
    (folder / "src" / "p" / "_generated" / "api.py").write_text("x = 2\n")
    assert {entry.kind for entry in drift()} == {"document", "edited"}
    lock = folder / ".mcpfactory" / "lock.json"
    before, after = (hashlib.sha256(text).hexdigest() for text in (b"x = 1\n", b"x = 2\n"))
    lock.write_text(lock.read_text().replace(before, after))
    assert drift() == []


def test_a_machine_file_edited_by_hand_is_drift_and_is_named(drifting):
    folder, drift = drifting
    (folder / "src/p/_generated/api.py").write_text("x = 2\n")
    (found,) = drift()
    assert (found.kind, found.message) == ("edited", "edited by hand: src/p/_generated/api.py")
    assert "the edit is lost" in found.means
    (folder / "src/p/_generated/api.py").unlink()
    assert [entry.kind for entry in drift()] == ["edited"]


def test_a_runtime_that_moved_on_is_drift_with_both_versions(workspace, drifting):
    _, drift = drifting
    store = Store(workspace)
    with store.transaction("books") as transaction:
        record = transaction.events[-1]
        inputs = {**record["inputs"], "runtime": "0.0.9"}
        transaction.append(
            "stage.finished",
            **{**{k: record[k] for k in ("stage", "run", "outcome", "seconds")}, "inputs": inputs},
        )
    (found,) = drift()
    assert (found.kind, found.command) == ("moved", "mcpfactory pipeline run books")
    assert "runtime 0.0.9 → " in found.message


@pytest.mark.parametrize(
    ("lock", "told"),
    [
        ("old", ["template"]),  # neither run nor merged: one line, and update is the first thing to do
        ("new", []),  # merged, not run: the stage is due, and that is no drift
        ("", ["moved"]),  # a lock of before
    ],
)
def test_what_the_lock_says_of_the_template_decides_not_what_ran(workspace, drifting, lock, told):
    from mcpfactory_pipeline.base.hashing import shorten_hash
    from mcpfactory_pipeline.views.drift import find_drift

    folder, _ = drifting
    place = folder / ".mcpfactory" / "lock.json"
    data = json.loads(place.read_text()) | ({"template": f"sha256:{lock}"} if lock else {})
    place.write_text(json.dumps(data))
    state = Store(workspace).state("books")
    record = state.stages["generate"]
    before = replace(state, stages={"generate": replace(record, inputs={**record.inputs, "template": "sha256:old"})})
    now = {"generate": {**record.inputs, "generated": "sha256:other", "template": shorten_hash("sha256:new")}}
    found = find_drift(workspace, workspace.server("books"), before, now)
    assert [entry.kind for entry in found if entry.kind != "edited"] == told


def test_a_document_that_changed_at_its_url_is_drift(workspace, drifting, served):
    folder, drift = drifting
    config = folder / "mcpfactory.toml"
    config.write_text(config.read_text().replace("http://127.0.0.1:9/x", served.url))
    (folder / "api" / "openapi.json").write_bytes(served.body)
    assert [entry.kind for entry in drift(refresh=True)] == ["document"]
    served.body = served.body.replace(b"One", b"Two")
    found = drift(refresh=True)[-1]
    assert (found.kind, found.command) == ("source", "mcpfactory update books")


@pytest.fixture
def served():
    """A document behind a URL; its body may be changed."""
    source = SimpleNamespace(body=b'{"openapi": "3.0.0", "info": {"title": "One", "version": "1"}, "paths": {}}')

    class Handler(LoopbackHandler):
        def get(self) -> None:
            self.answer(200, source.body)

    with serving(Handler) as url:
        source.url = f"{url}/openapi.json"
        yield source


def test_a_channel_that_is_behind_the_newest_candidate_is_drift(workspace, run, inbox):
    folder = add_server(workspace.root, "books")
    run("books")
    (folder / "source.txt").write_text("two")
    run("books")
    rollback(workspace, "books", "staging", reason="bad", stages=STAGES)
    (found,) = status(workspace)[0]["drift"]
    assert found["kind"] == "behind"
    assert "which is 1 behind the newest candidate" in found["message"]
    assert kinds(inbox()) == [("approval", "books", "production"), ("hold", "books", "staging")], "the hold says it all"


def test_a_channel_folder_with_other_bytes_than_the_state_says_is_drift(workspace, run, tmp_path):
    from mcpfactory_pipeline.base.hashing import hash_bytes

    add_server(workspace.root, "books")
    run("books")
    other = tmp_path / "books-1.0-py3-none-any.whl"
    other.write_bytes(b"other")
    copy_files_into_channel(workspace.pipeline / "channels", "staging", other, hash_bytes(b"other"))
    (found,) = status(workspace)[0]["drift"]
    assert (found["kind"], found["command"]) == ("channel", "mcpfactory pipeline restore books")


def test_every_kind_of_drift_and_of_item_is_documented():
    from tests.pipeline.conftest import ROOT

    page = (ROOT / "docs/reference/pipeline.md").read_text()
    assert [kind for kind in (*KINDS, *DRIFTS) if f"| `{kind}` |" not in page] == []
