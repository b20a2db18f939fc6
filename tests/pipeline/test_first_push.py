"""What `init` writes works on the day it is pushed: its jobs by hand, each step as written. The long form is a trial."""

from __future__ import annotations

import pytest

from benchmarks.trials.ci_simulator.expressions import evaluate, filled
from benchmarks.trials.first_push import GITHUB, faults, prepare

pytestmark = pytest.mark.xdist_group("first-push")


def test_the_first_push_is_green(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_COMPILE", "0")  # most of what is installed is never imported
    pushed = prepare(tmp_path, shared=True)
    pushed.factory("new", "hello", "--template", "minimal")
    pushed.push("A server")
    ran = pushed.github()
    assert list(faults("first push", ran, GITHUB)) == []
    assert "pip install --require-hashes " in ran["keep"].log
    assert "Pipeline: state and history of this run [skip ci]" in pushed.kept()[0]


CONTEXT = {"needs": {"plan": {"result": "success", "outputs": {"jobs": "2"}}}, "github": {"ref": "refs/heads/main"}}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("needs.plan.outputs.jobs != '0'", True),
        ("!cancelled() && needs.plan.result == 'success'", True),
        ("github.ref == 'refs/heads/it''s' || needs.nobody.outputs.x", ""),
        ("fromJSON('[1]')", [1]),
        ("startsWith(github.ref, 'refs/') && '--yes' || '--no'", "--yes"),
    ],
)
def test_expressions_mean_what_they_mean_at_the_provider(expression, value):
    assert evaluate(expression, CONTEXT, {"cancelled": lambda: False}) == value


def test_a_value_keeps_its_type_only_alone():
    assert filled("shard-${{ matrix.shard }}", {"matrix": {"shard": 3}}, {}) == "shard-3"
    assert filled("${{ matrix.shard }}", {"matrix": {"shard": 3}}, {}) == 3
