"""The rules of a `server.json` (schema 2025-12-11, and what the official MCP registry asks besides), and judging by them. Pure.

Fields of a wrong kind, missing or unknown are found by the first three rules, from the shapes; every other rule looks at the
objects of some shapes, and takes a field of a wrong kind for absent.
"""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.publish import rules_packages, rules_server
from mcpfactory_pipeline.publish.rules_server import PUBLISHER, SCHEMA
from mcpfactory_pipeline.publish.server_shapes import Found, Rule, places

__all__ = ["PUBLISHER", "RULES", "SCHEMA", "Found", "Rule", "judge"]

RULES: Final[tuple[Rule, ...]] = (*rules_server.RULES, *rules_packages.RULES)


def judge(document: object) -> list[Found]:
    """Everything that is wrong with a `server.json`, in the order of the document; empty when nothing is."""
    if not isinstance(document, dict):
        return [Found("server-json/kind", "", "the document is no object")]
    return [
        Found(rule.id, path, message)
        for place in places("server", "", document, {})
        for rule in RULES
        if not rule.shapes or place.shape in rule.shapes.split()
        for path, message in rule.find(place)
    ]
