"""Servers whose tools answer wrongly when they are called again, or with other arguments."""

from __future__ import annotations

import os
from typing import Any

from tests.broken_servers.healthy import Json, SampleServer, text


class Exhausted(SampleServer):
    """Keeps a slot for each failed call, and has eight."""

    rule = "tool-calls.after-failures"
    tolerated = True
    failures = 0

    def called(self, name: str, arguments: Json, token: Any) -> Json:
        result = super().called(name, arguments, token)
        self.failures += bool(result.get("isError"))
        return text("no slot is free", isError=True) if self.failures > 8 else result


class Confessor(SampleServer):
    """Its error texts contain the address of its database."""

    rule = "security.credentials-in-texts"

    def accept(self, name: str, arguments: Json) -> Json | None:
        refused = super().accept(name, arguments)
        return refused and text(f"{refused['content'][0]['text']} (postgresql://zoo:Kx9vTq27@db/zoo)", isError=True)


class Halver(SampleServer):
    """Cuts a text within a character."""

    rule = "content.lone-surrogates"

    def call(self, name: str, arguments: Json) -> Json:
        return text("waxing \ud83c") if name == "moon_phase" else super().call(name, arguments)


class Devourer(SampleServer):
    """Forgets what it told once, although its tool only reads."""

    rule = "tool-calls.side-effects"
    tolerated = True
    told = False

    def call(self, name: str, arguments: Json) -> Json:
        if name != "moon_phase":
            return super().call(name, arguments)
        said = "nothing new" if self.told else "waxing"
        self.told = True
        return text(said)


class Trapdoor(SampleServer):
    """Dies at the name of an unknown tool."""

    own_process = True
    rule = "tool-calls.answered"
    follows = frozenset({"legacy.unknown-tool"})

    def called(self, name: str, arguments: Json, token: Any) -> Json:
        if name not in {tool["name"] for tool in self.tools()}:
            os._exit(3)
        return super().called(name, arguments, token)


class Brittle(SampleServer):
    """Dies at a call without its required argument."""

    own_process = True
    rule = "tool-calls.answered"
    follows = frozenset({"tool-calls.argument-errors"})

    def called(self, name: str, arguments: Json, token: Any) -> Json:
        if name == "add" and "a" not in arguments:
            os._exit(3)
        return super().called(name, arguments, token)
