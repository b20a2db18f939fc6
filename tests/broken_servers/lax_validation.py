"""Servers that ignore one keyword of an inputSchema when they check arguments."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import ClassVar

from tests.broken_servers.healthy import Json, SampleServer, text, violations

RULE = "tool-calls.argument-validation"
_PROPERTIES: Json = {
    "kind": {"type": "string", "enum": ["lion", "ape"], "description": "Kind of the animals."},
    "cage": {"type": "string", "pattern": "^C[0-9]+$", "examples": ["C1"], "description": "Number of the cage."},
    "keeper": {"type": "string", "minLength": 2, "maxLength": 20, "examples": ["Ada"], "description": "Name."},
    "years": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "description": "Years of birth."},
    "place": {
        "type": "object",
        "properties": {"house": {"type": "string", "description": "Which house."}},
        "required": ["house"],
        "additionalProperties": False,
        "description": "Where they live.",
    },
    "hungry": {"type": "boolean", "description": "Only hungry animals."},
    "color": {"type": "string", "enum": ["red", "gray"], "description": "Color of the fur; any color if left out."},
}
# Name → keyword, and steps to the schema that has it.
LAX: dict[str, tuple[str, tuple[str, ...]]] = {
    "Zoologist": ("enum", ("kind",)),
    "Unpatterned": ("pattern", ("cage",)),
    "Emptier": ("minLength", ("keeper",)),
    "Childless": ("minItems", ("years",)),
    "Listener": ("type", ("keeper",)),
    "Lister": ("type", ("years",)),
    "Itemizer": ("type", ("years", "items")),
    "Placer": ("type", ("place",)),
    "Housekeeper": ("required", ("place",)),
    "Housemate": ("type", ("place", "properties", "house")),
    "Decider": ("type", ("hungry",)),
    "Painter": ("enum", ("color",)),
    "Longwinded": ("maxLength", ("keeper",)),
    "Collector": ("additionalProperties", ("place",)),
}
HARMLESS = frozenset({"maxLength", "additionalProperties"})


class Lax(SampleServer):
    """Base of the servers in the table: a tool that checks everything but one keyword."""

    ignored: ClassVar[str] = ""
    steps: ClassVar[tuple[str, ...]] = ()

    def tools(self) -> list[Json]:
        needed = [key for key in _PROPERTIES if key != "color"]
        find = {
            "name": "find_animals",
            "description": "Find the animals of the zoo that match all conditions.",
            "inputSchema": {"type": "object", "properties": deepcopy(_PROPERTIES), "required": needed},
            "annotations": {"readOnlyHint": True},
        }
        return [*super().tools(), find]

    def accept(self, name: str, arguments: Json) -> Json | None:
        if name != "find_animals":
            return super().accept(name, arguments)
        schema = self.tools()[-1]["inputSchema"]
        part = schema["properties"]
        for step in self.steps:
            part = part[step]
        if self.ignored:
            del part[self.ignored]
        wrong = next(violations(schema, arguments), "")
        return text(f"{wrong} does not match the schema", isError=True) if wrong else None

    def call(self, name: str, arguments: Json) -> Json:
        if name != "find_animals":
            return super().call(name, arguments)
        return text(f"Leo matches {json.dumps(arguments)}.", structuredContent={"names": ["Leo"]})


class HealthyScrupulous(Lax):
    """Checks all keywords."""


class Defaulter(Lax):
    """Uses the default for an optional argument that is invalid."""

    rule = RULE
    tolerated = True

    def accept(self, name: str, arguments: Json) -> Json | None:
        if violations_of_color(arguments):
            del arguments["color"]
        return super().accept(name, arguments)


def violations_of_color(arguments: Json) -> bool:
    """Return True if the optional argument is invalid."""
    return "color" in arguments and any(violations(_PROPERTIES["color"], arguments["color"]))


def lax() -> dict[str, type[SampleServer]]:
    """Return the servers of the table."""
    return {
        name: type(
            name,
            (Lax,),
            {
                "rule": RULE,
                "ignored": keyword,
                "steps": steps,
                "tolerated": keyword in HARMLESS,
                "__doc__": f"Ignores {keyword}.",
            },
        )
        for name, (keyword, steps) in LAX.items()
    }
