"""What the interfaces of model vendors refuse in a tool, from the vendors' own texts and independent of the dialects."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import jsonschema

Node = tuple[str, dict[str, Any], int]  # place, schema, level (the root is level 1)

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
GEMINI_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
LOOKAROUND: Final = re.compile(r"\(\?<?[=!]")
POSIX: Final = re.compile(r"\[:\^?[a-z]+:\]")


def nodes(schema: Any, place: str = "", level: int = 1) -> Iterator[Node]:
    """All schemas below a schema, which is the first."""
    if not isinstance(schema, dict):
        return
    yield place, schema, level
    for key in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
        for name, part in schema.get(key, {}).items():
            yield from nodes(part, f"{place}/{key}/{name}", level + 1)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for number, part in enumerate(schema.get(key, [])):
            yield from nodes(part, f"{place}/{key}/{number}", level + 1)
    for key in ("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"):
        yield from nodes(schema.get(key), f"{place}/{key}", level + 1)


def types(schema: dict[str, Any]) -> list[str]:
    found = schema.get("type", [])
    return [found] if isinstance(found, str) else found


def arrays_without_items(schema: Any) -> Iterator[str]:
    for place, part, _ in nodes(schema):
        if "array" in types(part) and not isinstance(part.get("items"), dict):
            yield f"{place}: an array without items"


def references(schema: Any) -> Iterator[str]:
    yield from (f"{place}: a reference" for place, part, _ in nodes(schema) if {"$ref", "$dynamicRef"} & part.keys())


def compiles(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except re.error:
        return False
    return True


def openai(tool: dict[str, Any]) -> Iterator[str]:
    """Refusals of OpenAI.

    - name: "a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64" (openai-openapi)
    - description: "Expected a string with maximum length 1024" (getsentry/sentry-mcp#106, 2025-04-25)
    - root: "must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level"
      (goruck/home-generative-agent#545, 2026-08-12)
    - pattern: "regex lookaround is not supported" (Dokploy/mcp#45, 2026-05-25), and what Python cannot compile
      (BerriAI/litellm#40485, 2026-09-09)
    - nesting: 10 levels (guide Structured Outputs, 2026-02)
    """
    schema = tool["inputSchema"]
    if not NAME.fullmatch(tool["name"]):
        yield "name"
    if len(tool.get("description", "")) > 1024:
        yield f"a description of {len(tool['description'])} characters"
    if schema.get("type") != "object" or {"oneOf", "anyOf", "allOf", "enum", "const", "not"} & schema.keys():
        yield "/: a combination at the root"
    for place, part, level in nodes(schema):
        if level > 10:
            yield f"{place}: level {level}"
        for pattern in [part.get("pattern", ""), *part.get("patternProperties", {})]:
            if LOOKAROUND.search(pattern) or not compiles(pattern):
                yield f"{place}: pattern {pattern}"
    yield from arrays_without_items(schema)


def anthropic(tool: dict[str, Any]) -> Iterator[str]:
    """Refusals of Anthropic.

    - name: `^[a-zA-Z0-9_-]{1,64}$` (page Define tools)
    - property names of the root: "should match pattern '^[a-zA-Z0-9_.-]{1,64}$'" (anthropics/claude-code#79418,
      2026-07-20)
    - root: "does not support oneOf, allOf, or anyOf at the top level" (anthropics/claude-code#5319, 2025-08-07)
    - "must match JSON Schema draft 2020-12" (anthropics/claude-code#63673, 2026-05-29)
    """
    schema = tool["inputSchema"]
    if not NAME.fullmatch(tool["name"]):
        yield "name"
    if {"oneOf", "anyOf", "allOf"} & schema.keys():
        yield "/: a combination at the root"
    yield from (f"/properties/{key}: its name" for key in schema.get("properties", {}) if not KEY.fullmatch(key))
    for error in jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA).iter_errors(schema):
        yield f"{error.json_path}: not 2020-12"


def vscode(tool: dict[str, Any]) -> Iterator[str]:
    """Refusals of VS Code (microsoft/vscode-copilot-chat, toolSchemaNormalizer.ts at 1700547f76).

    Schemas must match draft 7, and arrays must have items. `[[:alpha:]]` is no pattern of ECMA 262 with the flag u.
    """
    schema = tool["inputSchema"]
    for error in jsonschema.Draft7Validator(jsonschema.Draft7Validator.META_SCHEMA).iter_errors(schema):
        yield f"{error.json_path}: not draft 7"
    for place, part, _ in nodes(schema):
        if POSIX.search(part.get("pattern", "")):
            yield f"{place}: pattern {part['pattern']}"
    yield from arrays_without_items(schema)


def gemini(tool: dict[str, Any]) -> Iterator[str]:
    """Refusals of Gemini.

    - name: starts with a letter or an underscore, then letters, digits and `_.:-`, at most 64 (FunctionDeclaration)
    - enum: "cannot be empty" (FMXExpress/PasClaw#294, 2026-06-16), a list of strings (Schema; thClaws#172, 2026-06-19)
    - "items: missing field" (kkrishnan90/gemini-desktop#7, 2025-06-02)
    - references: not a field of Schema (v1beta)
    - required: "property is not defined" (iBUHub/AIStudioToAPI#154, 2026-05-05)
    """
    schema = tool["inputSchema"]
    if not GEMINI_NAME.fullmatch(tool["name"]):
        yield "name"
    for place, part, _ in nodes(schema):
        values = part.get("enum", ["x"])
        if not values or not all(isinstance(value, str) and value for value in values):
            yield f"{place}: enum {str(values)[:80]}"
        if set(part.get("required", ())) - part.get("properties", {}).keys():
            yield f"{place}: required without a property"
    yield from arrays_without_items(schema)
    yield from references(schema)


VENDORS: Final[dict[str, Callable[[dict[str, Any]], Iterator[str]]]] = {
    "openai": openai,
    "anthropic": anthropic,
    "vscode": vscode,
    "gemini": gemini,
}


def refusals(tools: list[dict[str, Any]]) -> list[str]:
    """What each vendor refuses, as "vendor: tool: place: reason"."""
    return [
        f"{vendor}: {tool['name']}: {reason}"
        for vendor, check in VENDORS.items()
        for tool in tools
        for reason in check(tool)
    ]
