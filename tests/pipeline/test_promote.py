"""Promotion and channels: only what passed, only the bytes that were checked, recorded with who and why."""

from __future__ import annotations

import re

import pytest

from mcpfactory_pipeline.base.errors import PromotionError, StateError
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.channels.channel import copy_files_into_channel
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.staged_workspace import configured, offered


@pytest.fixture
def workspace(workspace):
    """Production asks for nothing but that the candidate was in staging."""
    return configured(
        workspace,
        '[[pipeline.channels]]\nname = "staging"\n[[pipeline.channels]]\nname = "production"\nfrom = "staging"\n',
    )


@pytest.fixture
def move(workspace):
    def call(channel: str = "production", **options):
        return promote(workspace, "books", channel, **{"stages": STAGES, **options})

    return call


@pytest.fixture
def folder(workspace, run):
    """A server whose candidate passed."""
    made = add_server(workspace.root, "books")
    run("books")
    return made


def test_a_candidate_whose_checks_passed_moves_and_it_is_recorded(workspace, folder, move):
    state = Store(workspace).state("books")
    moved = move(reason="release day")
    assert len(moved.pop("precondition")) == 8 * len(moved.pop("facts"))
    assert moved == {
        "server": "books", "channel": "production", "candidate": state.candidate, "version": "1.0", "dry_run": False,
        "already": False, "pruned": {}, "callers": "",
    }  # fmt: skip
    assert offered(workspace, "production") == [b"one"]
    event = Store(workspace).history("books")[-1]
    assert (event["event"], event["actor"], event["reason"]) == ("promoted", "tester", "release day")
    assert Store(workspace).state("books").channels["production"].candidate == state.candidate
    assert verify(workspace) == []


def test_a_candidate_that_failed_is_refused_by_the_name_of_the_check(workspace, run, move):
    add_server(workspace.root, "books", outcome="failed")
    run("books")
    with pytest.raises(PromotionError, match="cannot be promoted to production: test failed") as caught:
        move()
    assert "mcpfactory pipeline run books" in caught.value.hint
    assert not (workspace.pipeline / "channels").exists()
    assert Store(workspace).state("books").channels == {}


def test_a_candidate_that_was_not_checked_is_refused(workspace, run, move):
    add_server(workspace.root, "books")
    run("books", until="build")
    with pytest.raises(PromotionError, match="test was not run on it"):
        move()


def test_a_check_of_an_earlier_candidate_does_not_count_for_the_new_one(workspace, run, folder, move):
    (folder / "source.txt").write_text("two")
    run("books", until="build")
    with pytest.raises(PromotionError, match="test was not run on it"):
        move("staging")
    assert move()["candidate"] != Store(workspace).state("books").candidate, "production takes what staging offers"


def test_without_a_candidate_there_is_nothing_to_promote(workspace, move):
    add_server(workspace.root, "books")
    with pytest.raises(PromotionError, match="has no candidate yet"):
        move()


def test_other_bytes_than_those_that_were_checked_are_refused(workspace, folder, move):
    state = Store(workspace).state("books")
    (workspace.artifacts / "books" / state.candidate / "books-1.0-py3-none-any.whl").write_bytes(b"evil")
    with pytest.raises(PromotionError, match="differs from the checked file") as caught:
        move()
    assert caught.value.hint
    assert not (workspace.pipeline / "channels" / "production" / "simple").exists()


def test_a_deleted_wheel_is_named_with_the_command_that_brings_it_back(workspace, folder, run, move):
    state = Store(workspace).state("books")
    (workspace.artifacts / "books" / state.candidate / "books-1.0-py3-none-any.whl").unlink()
    with pytest.raises(PromotionError, match="not on this machine") as caught:
        move()
    assert "mcpfactory pipeline restore books" in caught.value.hint
    run("books", force=True)
    move()
    assert offered(workspace, "production") == [b"one"]


def test_an_older_candidate_does_not_take_the_place_of_a_newer_one_unnoticed(workspace, folder, run, move):
    old = Store(workspace).state("books").candidate
    move()
    (folder / "source.txt").write_text("two")
    run("books")
    move()
    assert offered(workspace, "production") == [b"two"]
    with pytest.raises(PromotionError, match="is older than the candidate in production") as caught:
        move(candidate=old[:6])
    assert f"mcpfactory pipeline rollback books --channel production --candidate {old}" in caught.value.hint
    (folder / "source.txt").write_text("three")
    run("books")
    never = Store(workspace).state("books").candidate
    (folder / "source.txt").write_text("four")
    run("books")
    move()
    with pytest.raises(PromotionError, match="is older than the candidate in production") as caught:
        move(candidate=never)
    assert "rollback" not in caught.value.hint, "production never offered it"
    rollback(workspace, "books", "production", candidate=old, reason="four was bad", stages=STAGES)
    assert offered(workspace, "production") == [b"one"], "who asks for the newest version gets what was promoted last"


def put(folder, name: str, data: bytes):
    file = folder / name
    file.write_bytes(data)
    return file, hash_bytes(data)


def test_a_channel_lists_every_project_once(tmp_path):
    for name in ("a_b-1.0-py3-none-any.whl", "c-2.0-py3-none-any.whl", "a_b-1.1-py3-none-any.whl"):
        copy_files_into_channel(tmp_path / "channels", "staging", *put(tmp_path, name, name.encode()))
    root = (tmp_path / "channels/staging/simple/index.html").read_text()
    assert re.findall(r'href="([^"]+)"', root) == ["a-b/", "c/"]
    page = (tmp_path / "channels/staging/simple/a-b/index.html").read_text()
    assert re.findall(r">([^<]+\.whl)<", page) == ["a_b-1.1-py3-none-any.whl"]


def test_what_was_offered_before_stays_for_those_who_are_installing_it_and_no_longer(tmp_path):
    for number in range(4):
        copy_files_into_channel(
            tmp_path / "channels", "staging", *put(tmp_path, "a-1.0-py3-none-any.whl", b"%d" % number)
        )
    kept = sorted(file.read_bytes() for file in (tmp_path / "channels/staging/files").rglob("*.whl"))
    assert kept == [b"2", b"3"]


def test_a_wheel_with_another_hash_is_not_published(tmp_path):
    file, _ = put(tmp_path, "a-1.0-py3-none-any.whl", b"a")
    with pytest.raises(StateError, match="differs from the checked file"):
        copy_files_into_channel(tmp_path / "channels", "staging", file, hash_bytes(b"b"))
    assert not (tmp_path / "channels" / "staging").exists()
