"""The trials of `python -m benchmarks.trials`, in the form that takes seconds. The long form prints the same figures."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.trials import concurrency, faults, kills
from benchmarks.trials.__main__ import PARTS
from benchmarks.trials.command_process import Forked
from benchmarks.trials.fake_stages import environment
from benchmarks.trials.mutants import MUTANTS
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.skip_conditions import skip_without

pytestmark = pytest.mark.xdist_group("trials")


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MCPFACTORY_ACTOR", "trial")


def test_killed_at_any_moment_and_continued_no_promise_is_broken(tmp_path, capsys):
    outcome = kills.run(tmp_path, 1, seed=7)
    assert outcome.verdict == "ok", capsys.readouterr().out


def test_of_eight_processes_at_once_every_accepted_command_is_in_the_history_exactly_once(tmp_path, capsys):
    outcome = concurrency.run(tmp_path, 2, seed=7)
    assert outcome.verdict == "ok", capsys.readouterr().out


def test_each_mutant_of_a_trial_breaks_what_is_there():
    def apply() -> int:
        for one in MUTANTS.values():
            one.apply()
        return 0

    assert Forked(apply).end() == (0, "", "")
    assert {one.trial for one in MUTANTS.values()} <= set(PARTS)


@pytest.fixture(scope="module")
def broken_ground(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        return faults.prepare(tmp_path_factory.mktemp("faults") / "origin")


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.name)
def test_what_breaks_is_told_and_nothing_is_lost(broken_ground, tmp_path, fault):
    skip_without("mount" if fault.tmpfs else "posix")
    shutil.copytree(broken_ground.root, tmp_path / "space", symlinks=True)
    met = faults.meet(fault, Workspace.find(tmp_path / "space"))
    assert met.wrong == ()
