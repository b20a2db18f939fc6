"""Limits of the clients and model vendors that read a list of tools, with the source and date of each limit.

A dialect is a set of clients: its lists satisfy the strictest limits of all of them. A client without a row for a
subject documents no limit. docs/reference/client-limits.md shows this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple


class Limit(NamedTuple):
    """One limit of one client. `date` is the date of the source, or of the look-up if the source has no date."""

    client: str
    subject: str
    value: Any
    source: str
    date: str

    @property
    def text(self) -> str:
        """Return the limit in words."""
        values = sorted(self.value) if isinstance(self.value, frozenset) else [str(self.value)]
        return SUBJECTS[self.subject] + ("" if self.value is True else f": {', '.join(values)}")


_GITHUB: Final = "https://github.com/"
_OPENAI: Final = f"{_GITHUB}openai/openai-openapi"
_STRICT: Final = "https://platform.openai.com/docs/guides/structured-outputs"
_CLAUDE: Final = "https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools"
_COPILOT: Final = f"{_GITHUB}microsoft/vscode-copilot-chat/blob/main/src/extension/tools/common/toolSchemaNormalizer.ts"
_GEMINI: Final = "https://ai.google.dev/api/caching"
_PATTERNS: Final = "https://json-schema.org/draft/2020-12/json-schema-core#section-6.4"
_KIMI: Final = f"{_GITHUB}MoonshotAI/walle/blob/main/docs/mfjs-spec.md"
_LLAMA: Final = f"{_GITHUB}ggml-org/llama.cpp/blob/master/grammars/README.md"
_MISTRAL: Final = "https://docs.mistral.ai/api"

SUBJECTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tool_name": "regular expression of a tool's name",
        "tool_name_length": "maximum characters of a tool's name",
        "tool_description": "maximum characters of a tool's description",
        "tools": "maximum number of tools",
        "levels": "maximum nesting of schemas; the root is the first level",
        "root": "keywords that the root must not have",
        "combinators": "`properties` is not permitted beside `anyOf` and `oneOf`",
        "references": "`$ref` is not permitted",
        "types": "`type` must be one type",
        "items": "arrays must have `items`, which is a schema",
        "enum": "values that `enum` must not have",
        "pattern": "faults that a pattern must not have",
        "property_name": "regular expression of the names of arguments",
        "required": "required properties must be declared in `properties`",
    }
)
"""Subjects of limits. A limit without a number or names has the value True."""

_COMBINING: Final = frozenset({"anyOf", "oneOf", "allOf"})
_OPENAI_ROOT: Final = _COMBINING | {"enum", "const", "not"}
_OPENAI_PATTERN: Final = frozenset({"lookaround", "syntax that Python lacks"})
_NAME: Final = "[a-zA-Z0-9_-]+"
_ARGUMENT: Final = "[a-zA-Z0-9_.-]{1,64}"
_OTHER_TYPES: Final = "other or mixed types"

LIMITS: Final = (
    Limit("openai", "tool_name", _NAME, _OPENAI, "2026-08-21"),
    Limit("openai", "tool_name_length", 64, _OPENAI, "2026-08-21"),
    Limit("openai", "tool_description", 1024, f"{_GITHUB}getsentry/sentry-mcp/issues/106", "2025-04-25"),
    Limit("openai", "tools", 128, f"{_OPENAI}/pull/76", "2023-08-31"),
    Limit("openai", "levels", 10, _STRICT, "2026-11-30"),
    Limit("openai", "root", _OPENAI_ROOT, f"{_GITHUB}goruck/home-generative-agent/pull/545", "2026-08-12"),
    Limit("openai", "items", True, f"{_GITHUB}microsoft/vscode/issues/246119", "2025-04-08"),
    Limit("openai", "pattern", _OPENAI_PATTERN, f"{_GITHUB}BerriAI/litellm/pull/40485", "2026-09-09"),
    Limit("anthropic", "tool_name", _NAME, _CLAUDE, "2026-11-30"),
    Limit("anthropic", "tool_name_length", 64, _CLAUDE, "2026-11-30"),
    Limit("anthropic", "root", _COMBINING, f"{_GITHUB}anthropics/claude-code/issues/5319", "2025-08-07"),
    Limit("anthropic", "property_name", _ARGUMENT, f"{_GITHUB}anthropics/claude-code/issues/79418", "2026-07-20"),
    Limit("vscode", "tool_name_length", 64, f"{_GITHUB}microsoft/vscode/issues/243602", "2025-03-14"),
    Limit("vscode", "tools", 128, "https://code.visualstudio.com/docs/copilot/chat/chat-tools", "2026-11-30"),
    Limit("vscode", "root", _COMBINING | {"not", "if", "then", "else"}, _COPILOT, "2026-11-30"),
    Limit("vscode", "items", True, _COPILOT, "2026-11-30"),
    Limit("vscode", "pattern", frozenset({"POSIX classes"}), _PATTERNS, "2026-11-30"),
    Limit("gemini", "tool_name", "[a-zA-Z_][a-zA-Z0-9_.:-]*", _GEMINI, "2026-11-30"),
    Limit("gemini", "tool_name_length", 64, _GEMINI, "2026-11-30"),
    Limit("gemini", "tools", 512, f"{_GITHUB}google-gemini/gemini-cli/issues/19083", "2026-02-14"),
    Limit("gemini", "references", True, _GEMINI, "2026-11-30"),
    Limit("gemini", "items", True, f"{_GITHUB}kkrishnan90/gemini-desktop/pull/7", "2025-06-02"),
    Limit(
        "gemini",
        "enum",
        frozenset({"empty texts", "numbers", _OTHER_TYPES}),
        f"{_GITHUB}thClaws/thClaws/issues/172",
        "2026-06-19",
    ),
    Limit("gemini", "required", True, f"{_GITHUB}iBUHub/AIStudioToAPI/issues/154", "2026-05-05"),
    Limit("kimi", "types", True, _KIMI, "2026-11-30"),
    Limit("kimi", "enum", frozenset({_OTHER_TYPES}), _KIMI, "2026-11-30"),
    Limit("llama", "combinators", True, _LLAMA, "2026-11-30"),
    Limit("llama", "references", True, _LLAMA, "2026-11-30"),
    Limit("llama", "pattern", frozenset({"missing ^ or $"}), _LLAMA, "2026-11-30"),
    Limit("mistral", "tool_name", _NAME, _MISTRAL, "2026-11-30"),
    Limit("mistral", "tool_name_length", 64, _MISTRAL, "2026-11-30"),
    # Claude Code prepends `mcp__SERVER__`, and permits 64 characters in total: 24 for the prefix, 40 for the tool.
    Limit("claude-code", "tool_name_length", 40, f"{_GITHUB}mims-harvard/ToolUniverse/issues/65", "2026-01-26"),
)

CLIENTS: Final = tuple(dict.fromkeys(limit.client for limit in LIMITS))
DEFAULT_DIALECT: Final = "plain"
DIALECTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "plain": ("openai", "anthropic", "vscode", "gemini"),
        "standard": (),
        "flat": CLIENTS,
        **{client: (client,) for client in CLIENTS},
    }
)
"""Dialects, and the clients whose limits they satisfy. `standard` is unchanged JSON Schema 2020-12."""


@lru_cache
def dialect_limits(dialect: str) -> Mapping[str, Any]:
    """Return the strictest limits of a dialect by subject. Of several regular expressions, return the first."""
    found: dict[str, Any] = {}
    for limit in LIMITS:
        if limit.client in DIALECTS[dialect]:
            known = found.setdefault(limit.subject, limit.value)
            if isinstance(known, frozenset):
                found[limit.subject] = known | limit.value
            elif isinstance(known, int):
                found[limit.subject] = min(known, limit.value)
    return MappingProxyType(found)
