"""Servers whose tools answer wrongly when they are called again, or with other arguments."""

from __future__ import annotations

import json
import os
from typing import Any, ClassVar

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


class HealthyKeeperFinder(SampleServer):
    """Knows the keepers of the animals that another tool lists."""

    keepers: ClassVar[dict[str, str]] = {"Leo": "Ada", "Kong": "Grace", "Nemo": "Alan"}

    def tools(self) -> list[Json]:
        name = {"type": "string", "description": "Name of an animal."}
        schema = {"type": "object", "properties": {"animal": name}, "required": ["animal"]}
        more = (
            ("list_animals", "List the names of the animals that have a keeper.", {"type": "object"}),
            ("find_keeper", "Find the keeper of an animal of the zoo.", schema),
        )
        hints = {"readOnlyHint": True}
        return [
            *super().tools(),
            *(
                {"name": tool, "description": said, "inputSchema": takes, "annotations": hints}
                for tool, said, takes in more
            ),
        ]

    def call(self, name: str, arguments: Json) -> Json:
        if name == "list_animals":
            return text(", ".join(self.keepers))
        if name != "find_keeper":
            return super().call(name, arguments)
        keeper = self.keepers.get(self.wanted(arguments["animal"]))
        return text(keeper) if keeper else text("the zoo has no such animal", isError=True)

    def wanted(self, animal: str) -> str:
        return animal


class Misreader(HealthyKeeperFinder):
    """Reads messages in the encoding of some systems, and repeats their texts."""

    rule = "content.encoding"

    def call(self, name: str, arguments: Json) -> Json:
        if name == "find_keeper" and arguments["animal"] not in self.keepers:
            animal = arguments["animal"].encode().decode("latin-1")
            return text(f"the zoo has no {animal}", isError=True)
        return super().call(name, arguments)


class Duplicating(SampleServer):
    """Adds an entry in each call of a tool that is marked as idempotent."""

    rule = "tool-calls.idempotent"
    own_process = True
    entries = 0

    def tools(self) -> list[Json]:
        hints = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}
        add = {"name": "open_gate", "description": "Open the gate of the zoo for today.", "annotations": hints}
        return [*super().tools(), {**add, "inputSchema": {"type": "object"}}]

    def call(self, name: str, arguments: Json) -> Json:
        self.entries += name == "open_gate"
        if name == "open_gate":
            return text("open")
        return (
            text(f"waxing, seen from {self.entries} gates") if name == "moon_phase" else super().call(name, arguments)
        )


class Sharer(HealthyKeeperFinder):
    """Keeps the argument of a call where the next call replaces it."""

    rule = "tool-calls.overlapping"
    shared = ""

    def wanted(self, animal: str) -> str:
        return self.shared or animal

    def feed_all(self, lines: list[str]) -> None:
        named = (json.loads(line)["params"]["arguments"].get("animal") for line in lines if "find_keeper" in line)
        self.shared = next((one for one in reversed([*named]) if one), "")
        super().feed_all(lines)
        self.shared = ""


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
