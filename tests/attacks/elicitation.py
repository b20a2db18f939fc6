"""Attacks by answers: to questions never asked, answered before, asked by another server, or changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.server.request_state import RequestStateSealer
from mcpfactory_runtime.types import Json
from tests.attacks.http_target import HarmError, modern, serving

_YES: Json = {"action": "accept", "content": {"yes": True}}
_FORM: Json = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}
_CALL: Json = {"name": "pay", "arguments": {"amount": 5}}


class _Till:
    """A server that pays after a person agreed, and counts the payments."""

    def __init__(self, name: str = "till") -> None:
        self.paid = 0
        self.server = Server(name)
        self.server.tool(self.pay)

    async def pay(self, ctx: Context, amount: int) -> str:
        """Pay."""
        answer = await ctx.elicit(f"Pay {amount}?", _FORM)
        if answer.accepted and answer.content.get("yes") is True:
            self.paid += 1
        return "paid" if self.paid else "not paid"


def _said(port: int, **more: Any) -> str:
    answer = modern(port, "tools/call", {**_CALL, **more})
    found = answer.message
    return str(found["error"]["message"] if "error" in found else found["result"].get("resultType"))


def _state(port: int) -> str:
    return str(modern(port, "tools/call", _CALL).message["result"]["requestState"])


@contextmanager
def _till() -> Iterator[tuple[_Till, int]]:
    till = _Till()
    with serving(till.server) as port:
        yield till, port


def _expect(till: _Till, paid: int, said: str) -> str:
    if till.paid != paid:
        raise HarmError(f"paid {till.paid} times: {said}")
    return said


def _never_put(_: Path) -> str:
    with _till() as (till, port):
        return _expect(till, 0, _said(port, inputResponses={"elicitation-1": _YES, "elicit-1": _YES}))


def _replayed(_: Path) -> str:
    with _till() as (till, port):
        given = {"inputResponses": {"elicitation-1": _YES}, "requestState": _state(port)}
        for _turn in range(3):
            said = _said(port, **given)
        return _expect(till, 1, said)


def _other_arguments(_: Path) -> str:
    with _till() as (till, port):
        given = {"inputResponses": {"elicitation-1": _YES}, "requestState": _state(port)}
        return _expect(till, 0, _said(port, **given, arguments={"amount": 5000}))


def _other_server(_: Path) -> str:
    till, other = _Till(), _Till("bank")
    till.server._sealer, other.server._sealer = (
        RequestStateSealer(b"shared", "till"),
        RequestStateSealer(b"shared", "bank"),
    )
    with serving(till.server) as port, serving(other.server) as second:
        return _expect(till, 0, _said(port, inputResponses={"elicitation-1": _YES}, requestState=_state(second)))


def _changed(_: Path) -> str:
    with _till() as (till, port):
        state = _state(port)
        return _expect(till, 0, _said(port, inputResponses={"elicitation-1": _YES}, requestState="A" + state[1:]))


ROWS = {
    "a yes under a key that can be guessed, without a state": ("asked instead", _never_put),
    "one yes, sent three times": ("counts once", _replayed),
    "a yes to other arguments": ("refused", _other_arguments),
    "a state of another server with the same key": ("refused", _other_server),
    "a state that was changed": ("refused", _changed),
}
