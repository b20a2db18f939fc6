"""Events go to a file and to a webhook; whoever receives them can neither slow a run down nor make it fail."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from contextlib import ExitStack
from functools import partial

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.reporting.receivers import notice_line
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.settings import DECISIONS, KINDS
from tests.loopback_server import LoopbackHandler, serving
from tests.pipeline.conftest import ROOT
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import configured
from tests.timeouts import TIMEOUT

SECRET = "s3cret"


class Receiver:
    """A real HTTP server. `answers` are the status codes of its first answers, 204 after that; `stuck` answers nothing.

    `says` is how many bytes follow an answer, and `unheard` is set once somebody who was told that much did not listen to its end.
    """

    def __init__(self) -> None:
        receiver, self.answers, self.got, self.stuck = self, [], [], threading.Event()
        self.stuck.set()
        self.says, self.unheard = 0, threading.Event()

        class Handler(LoopbackHandler):
            def post(self) -> None:
                receiver.got.append((dict(self.headers), self.body()))
                receiver.stuck.wait(TIMEOUT)
                self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
                self.send_header("Content-Length", str(receiver.says))
                self.end_headers()
                try:
                    for _ in range(receiver.says // 1_000_000):
                        self.wfile.write(b"x" * 1_000_000)
                except ConnectionError:
                    receiver.unheard.set()

        self.served = ExitStack()
        self.url = f"{self.served.enter_context(serving(Handler))}/hook"

    @property
    def events(self) -> list[dict]:
        return [json.loads(body) for _, body in self.got]

    def close(self) -> None:
        self.stuck.set()
        self.served.close()


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


def run_with(workspace, settings: str):
    """Run one server in a workspace with these settings of its events; return the workspace."""
    space = configured(workspace, f"[pipeline.events]\n{settings}\n")
    add_server(space.root, "books")
    assert run_pipeline(space, stages=STAGES, executor=InProcessExecutor()).servers == {"books": "passed"}
    assert verify(space) == []
    return space


@pytest.fixture
def ran(workspace):
    return partial(run_with, workspace)


def test_a_run_is_told_in_order_to_a_webhook_and_the_same_to_a_file(ran, receiver, capsys):
    space = ran(f'webhook = "{receiver.url}"\nlog = "pipeline/artifacts/events.jsonl"')
    told = receiver.events
    assert [(event["event"], event.get("stage")) for event in told] == [
        ("step.finished", "build"), ("step.finished", "test"), ("step.finished", "staging"), ("run.finished", None),
    ]  # fmt: skip
    assert told[0]["workspace"] == "space"
    assert (told[0]["server"], told[0]["outcome"]) == ("books", "passed")
    assert told[-1]["servers"] == {"books": "passed"}
    lines = (space.artifacts / "events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == told
    assert [headers["X-MCPFactory-Event"] for headers, _ in receiver.got] == [event["event"] for event in told]
    assert len({headers["X-MCPFactory-Delivery"] for headers, _ in receiver.got}) == 4
    assert capsys.readouterr().err == ""


def test_every_kind_can_be_had_and_a_choice_is_kept_to(ran, receiver):
    ran(f'webhook = "{receiver.url}"\nkinds = ["*"]')
    kinds = {event["event"] for event in receiver.events}
    assert {"run.started", "step.started", "step.finished", "run.finished"} <= kinds


def test_who_has_the_secret_can_tell_that_an_event_is_genuine(ran, receiver, monkeypatch):
    monkeypatch.setenv("EVENTS_SECRET", SECRET)
    ran(f'webhook = "{receiver.url}"\nsecret_variable = "EVENTS_SECRET"\nkinds = ["run.finished"]')
    ((headers, body),) = receiver.got
    signed = headers["X-MCPFactory-Timestamp"].encode() + b"." + body
    assert (
        headers["X-MCPFactory-Signature"] == "sha256=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    )
    assert SECRET not in body.decode()


def test_without_its_secret_nothing_is_sent_and_a_line_says_why(ran, receiver, capsys):
    ran(f'webhook = "{receiver.url}"\nsecret_variable = "EVENTS_SECRET"')
    assert receiver.got == []
    assert "the webhook is off, because EVENTS_SECRET is not set" in capsys.readouterr().err


def test_a_receiver_in_trouble_is_asked_again_with_the_same_delivery(ran, receiver, capsys):
    receiver.answers = [503, 429]
    ran(f'webhook = "{receiver.url}"\nkinds = ["run.finished"]')
    assert len({headers["X-MCPFactory-Delivery"] for headers, _ in receiver.got}) == 1
    assert len(receiver.got) == 3
    assert capsys.readouterr().err == ""


def test_a_receiver_that_refuses_is_not_asked_again_and_the_run_passes(ran, receiver, capsys):
    receiver.answers = [403]
    ran(f'webhook = "{receiver.url}"\nkinds = ["run.finished"]')
    assert len(receiver.got) == 1
    assert capsys.readouterr().err == "warning: events: 1 event not delivered to the webhook: it answered 403\n"


def test_a_receiver_that_is_gone_does_not_hurt_the_run_and_its_url_is_not_shown(ran, receiver, capsys):
    receiver.close()
    ran(f'webhook = "{receiver.url}?token=hidden"\nattempts = 1\nkinds = ["run.finished"]')
    err = capsys.readouterr().err
    assert err == "warning: events: 1 event not delivered to the webhook: connection refused\n"


def test_a_receiver_that_never_answers_does_not_hold_the_run_up(ran, receiver, capsys):
    receiver.stuck.clear()
    ran(f'webhook = "{receiver.url}"\nattempts = 1\ntimeout = 0.2\nkinds = ["run.finished"]')
    assert "1 event not delivered to the webhook: ReadTimeout" in capsys.readouterr().err


def test_what_a_receiver_says_is_not_listened_to(ran, receiver, capsys):
    receiver.answers, receiver.says = [200], 200_000_000
    ran(f'webhook = "{receiver.url}"\nkinds = ["run.finished"]')
    assert receiver.unheard.wait(TIMEOUT)
    assert capsys.readouterr().err == ""


def test_what_people_decide_is_told_as_history_has_it_and_a_rehearsal_is_not(ran, receiver, set_actor):
    space = ran(f'webhook = "{receiver.url}"\nkinds = ["approved", "held"]')
    set_actor("Ada")
    decision.approve(space, "books", "production", reason="fine", stages=STAGES, dry_run=True)
    assert receiver.events == []
    decision.approve(space, "books", "production", reason="fine", stages=STAGES)
    (told,) = receiver.events
    (recorded,) = [event for event in Store(space).history("books") if event["event"] == "approved"]
    assert told == {"workspace": "space", "server": "books", **recorded}
    assert (told["actor"], told["reason"], told["channel"]) == ("Ada", "fine", "production")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('kinds = ["step.exploded"]', 'kinds[1]: "step.exploded" is not valid'),
        ('kinds = "promoted"', "kinds: must be a list of strings"),
        ('log = "../events.jsonl"', "is outside the workspace"),
        ('log = "/tmp/events.jsonl"', "is outside the workspace"),
        ('webhook = "chat.example.org"', "is not a valid URL"),
        ('webhook = "https://a.example"\nwebhook_variable = "A"', "'webhook_variable' cannot be combined"),
        ('secret_variable = "a b"', 'secret_variable: "a b" is not valid'),
        ("timeout = 0", "timeout: 0 is not valid"),
        ("attempts = 99", "attempts: 99 is not valid"),
        ("log = 3", "log: must be a string"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_anything_runs(workspace, settings, message):
    add_server(workspace.root, "books")
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        run_pipeline(
            configured(workspace, f"[pipeline.events]\n{settings}\n"), stages=STAGES, executor=InProcessExecutor()
        )
    assert caught.value.hint
    assert Store(workspace).history("books") == []


def test_every_kind_is_in_the_reference():
    page = (ROOT / "docs/reference/events.md").read_text(encoding="utf-8")
    assert set(DECISIONS) < set(KINDS)
    assert [kind for kind in KINDS if f"| `{kind}` |" not in page] == []


def test_line_omits_missing_facts() -> None:
    notice = {"event": "approved", "server": "shop", "version": "1.0", "channel": "production", "actor": "Ada"}
    assert notice_line(notice) == "shop: 1.0 is approved for production by Ada"
