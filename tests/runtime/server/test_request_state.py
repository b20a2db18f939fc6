from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError
from mcpfactory_runtime.server.request_state import LIFETIME, RequestStateSealer
from mcpfactory_runtime.storage.base import MemoryStore
from tests.runtime.requirements import requirement

BOUND: dict[str, Any] = {"principal": "ann", "method": "tools/call", "params": {"name": "t", "arguments": {"a": 1}}}
ANSWERS = {"name": {"action": "accept"}}


def test_a_state_opens_for_the_same_request_whatever_the_repetition_adds() -> None:
    sealer = RequestStateSealer(b"key")
    state = sealer.seal(ANSWERS, ["name"], now=0, **BOUND)
    again = {**BOUND, "params": {**BOUND["params"], "_meta": {"x": 1}, "inputResponses": {}, "requestState": state}}
    opened = sealer.open(state, now=LIFETIME, **again)
    assert (opened.answers, opened.asked) == (ANSWERS, {"name"})


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
    sealer = RequestStateSealer(b"key")
    state = sealer.seal(ANSWERS, ["name"], now=0, **BOUND)
    with pytest.raises(McpError) as refused:
        sealer.open(state, **{**BOUND, "now": 1, **changes})
    assert refused.value.code == INVALID_PARAMS


@requirement("input-required.integrity")
def test_every_change_and_every_other_key_breaks_the_seal() -> None:
    state = RequestStateSealer(b"key").seal(ANSWERS, ["name"], now=0, **BOUND)
    for changed in (state + "x", "x" + state, state[:-1], state.replace("e", "f", 1)):
        with pytest.raises(McpError):
            RequestStateSealer(b"key").open(changed, now=0, **BOUND)
    with pytest.raises(McpError):
        RequestStateSealer(b"other").open(state, now=0, **BOUND)


@requirement("input-required.any-process")
def test_processes_with_the_same_key_in_their_environment_open_each_others_states(monkeypatch: Any) -> None:
    monkeypatch.setenv("MCPFACTORY_STATE_KEY", "shared")
    state = RequestStateSealer.from_environment().seal(ANSWERS, ["name"], now=0, **BOUND)
    assert RequestStateSealer.from_environment().open(state, now=0, **BOUND).answers == ANSWERS
    monkeypatch.delenv("MCPFACTORY_STATE_KEY")
    with pytest.raises(McpError):
        RequestStateSealer.from_environment().open(state, now=0, **BOUND)


def test_a_state_is_used_once() -> None:
    first = RequestStateSealer(b"key", "shop")
    state = first.open(first.seal(ANSWERS, ["name"], now=0, **BOUND), now=0, **BOUND)
    asyncio.run(first.mark_used(state, now=LIFETIME))
    with pytest.raises(McpError, match="requestState was already used"):
        asyncio.run(first.mark_used(state, now=LIFETIME))


@pytest.mark.anyio
async def test_processes_that_share_a_store_share_the_key_and_what_was_used(monkeypatch: Any) -> None:
    monkeypatch.delenv("MCPFACTORY_STATE_KEY", raising=False)
    store, first, other, stranger = MemoryStore(), *(RequestStateSealer.from_environment("shop") for _ in range(3))
    await first.share(store)
    await other.share(store)
    await stranger.share(MemoryStore())
    text = first.seal(ANSWERS, ["name"], now=0, **BOUND)
    state = other.open(text, now=0, **BOUND)
    with pytest.raises(McpError, match="another process"):
        stranger.open(text, now=0, **BOUND)
    await other.mark_used(state, now=LIFETIME)
    for one in (first, other):
        with pytest.raises(McpError, match="requestState was already used"):
            await one.mark_used(state, now=LIFETIME)
    monkeypatch.setenv("MCPFACTORY_STATE_KEY", "given")
    given = RequestStateSealer.from_environment("shop")
    await given.share(store)
    assert RequestStateSealer(b"given", "shop").open(given.seal(ANSWERS, ["name"], now=0, **BOUND), now=0, **BOUND)


@pytest.mark.anyio
@pytest.mark.parametrize("shared", [True, False])
async def test_a_code_is_redeemed_once_by_whichever_process(shared: bool, monkeypatch: Any) -> None:
    monkeypatch.setenv("MCPFACTORY_STATE_KEY", "shared")
    first, other = (RequestStateSealer.from_environment("shop") for _ in range(2))
    if shared:
        store = MemoryStore()
        await first.share(store)
        await other.share(store)
    code = first.code(now=0, **BOUND)
    for changes in ({"principal": "bob"}, {"method": "prompts/get"}, {"params": {"name": "u"}}, {"now": 601}):
        assert not await other.redeem(code, **{**BOUND, "now": 1, **changes})
    assert await other.redeem(code, now=599, **BOUND)
    assert not await (first if shared else other).redeem(code, now=599, **BOUND)
