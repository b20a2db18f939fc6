from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError
from mcpfactory_runtime.server.sealing import LIFETIME, Sealer
from tests.runtime.requirements import requirement

BOUND: dict[str, Any] = {"principal": "ann", "method": "tools/call", "params": {"name": "t", "arguments": {"a": 1}}}
ANSWERS = {"name": {"action": "accept"}}


def test_a_state_opens_for_the_same_request_whatever_the_repetition_adds() -> None:
    sealer = Sealer(b"key")
    state = sealer.seal(ANSWERS, now=0, **BOUND)
    again = {**BOUND, "params": {**BOUND["params"], "_meta": {"x": 1}, "inputResponses": {}, "requestState": state}}
    assert sealer.open(state, now=LIFETIME, **again) == ANSWERS


@requirement("input-required.principal", "input-required.expiry", "input-required.request")
@pytest.mark.parametrize(
    "changes",
    [
        {"principal": "bob"},
        {"method": "prompts/get"},
        {"params": {"name": "t", "arguments": {"a": 2}}},
        {"now": LIFETIME + 1},
    ],
)
def test_a_state_opens_for_nothing_else(changes: dict[str, Any]) -> None:
    sealer = Sealer(b"key")
    state = sealer.seal(ANSWERS, now=0, **BOUND)
    with pytest.raises(McpError) as refused:
        sealer.open(state, **{**BOUND, "now": 1, **changes})
    assert refused.value.code == INVALID_PARAMS


@requirement("input-required.integrity")
@pytest.mark.parametrize("state", [None, 5, "", "nonsense", "a.b", "é.ü"])
def test_what_is_no_state_is_refused(state: Any) -> None:
    with pytest.raises(McpError):
        Sealer(b"key").open(state, now=0, **BOUND)


@requirement("input-required.integrity")
def test_every_change_and_every_other_key_breaks_the_seal() -> None:
    state = Sealer(b"key").seal(ANSWERS, now=0, **BOUND)
    for changed in (state + "x", "x" + state, state[:-1], state.replace("e", "f", 1)):
        with pytest.raises(McpError):
            Sealer(b"key").open(changed, now=0, **BOUND)
    with pytest.raises(McpError):
        Sealer(b"other").open(state, now=0, **BOUND)


@requirement("input-required.any-process")
def test_processes_with_the_same_key_in_their_environment_open_each_others_states(monkeypatch: Any) -> None:
    monkeypatch.setenv("MCPFACTORY_STATE_KEY", "shared")
    state = Sealer.from_environment().seal(ANSWERS, now=0, **BOUND)
    assert Sealer.from_environment().open(state, now=0, **BOUND) == ANSWERS
    monkeypatch.delenv("MCPFACTORY_STATE_KEY")
    with pytest.raises(McpError):
        Sealer.from_environment().open(state, now=0, **BOUND)
