"""What both versions of a server are asked, made from what the first one offers: right arguments and wrong ones. Pure.

Tools are called that are marked `readOnlyHint`, and those for which a person gave calls; all others only when a person says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.checks.families.behaviour import hint
from mcpfactory_pipeline.checks.samples import other_arguments, sample, sample_arguments, wrong_arguments

__all__ = ["ONLY_READING", "CallPermission", "ComparedRequest", "plan_requests"]

UNKNOWN: Final = "mcpfactory_unknown"  # an argument that no tool has
_VARIABLE: Final = re.compile(r"\{([?&]?)([^}]*)\}")
_PLAIN: Final = ("integer", "number", "boolean")


@dataclass(frozen=True, slots=True)
class CallPermission:
    """Which tools may be called: those marked `readOnlyHint` always, with arguments that are made up.

    `examples` are calls that a person gave (`tool`, `arguments`), of whatever tool. With `all_tools` every tool is called as those are
    that only read.
    """

    examples: Sequence[Mapping[str, Any]] = ()
    all_tools: bool = False

    def guesses(self, tool: Mapping[str, Any]) -> bool:
        """Whether a tool is called with arguments that are made up."""
        return self.all_tools or hint(dict(tool), "readOnlyHint") is True

    def given(self, name: str) -> list[dict[str, Any]]:
        """Return the arguments that a person gave for a tool, call by call."""
        return [dict(one.get("arguments") or {}) for one in self.examples if one["tool"] == name]


ONLY_READING: Final = CallPermission()


@dataclass(frozen=True, slots=True)
class ComparedRequest:
    """A request that both versions are sent: a name for it, the method and its parameters.

    `stray` says that it carries an argument that the tool does not have: the runtime refuses that on purpose. `tool` is the
    name of the tool that it calls, "" for none.
    """

    name: str
    method: str
    params: Mapping[str, Any]
    stray: bool = False
    tool: str = ""


def plan_requests(
    tools: Sequence[Mapping[str, Any]],
    resources: Sequence[Mapping[str, Any]],
    templates: Sequence[Mapping[str, Any]],
    prompts: Sequence[Mapping[str, Any]],
    permission: CallPermission = ONLY_READING,
) -> list[ComparedRequest]:
    """Return what is asked, none twice: every tool that may be called with several arguments, every resource, template and prompt."""
    asked: dict[str, ComparedRequest] = {}
    for tool in tools:
        called = str(tool["name"])
        guesses = _arguments(tool.get("inputSchema")) if permission.guesses(tool) else ()
        for arguments, stray in [*((one, False) for one in permission.given(called)), *guesses]:
            name = f"{called}({json.dumps(arguments, sort_keys=True, ensure_ascii=False)})"
            params = {"name": called, "arguments": arguments}
            asked.setdefault(name, ComparedRequest(name, "tools/call", params, stray, called))
    uris = [str(one["uri"]) for one in resources]
    uris += [uri for one in templates for uri in _expanded(str(one["uriTemplate"]))]
    for uri in uris:
        asked.setdefault(f"read {uri}", ComparedRequest(f"read {uri}", "resources/read", {"uri": uri}))
    for prompt in prompts:
        for given in _prompt_arguments(prompt):
            name = f"prompt {prompt['name']}({json.dumps(given, sort_keys=True)})"
            asked.setdefault(name, ComparedRequest(name, "prompts/get", {"name": prompt["name"], "arguments": given}))
    return list(asked.values())


def _arguments(schema: Any) -> Iterator[tuple[dict[str, Any], bool]]:
    """The required ones, others, all that there are, numbers as texts, what breaks the schema, and one that the tool has not."""
    made, _ = sample_arguments(schema)
    yield made, False
    for others in other_arguments(schema, made):
        yield others, False
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    declared = properties if isinstance(properties, Mapping) else {}
    whole = {str(key): made.get(key) or _one(part, schema) for key, part in declared.items()}
    yield whole, False
    texts = {
        key: json.dumps(value)
        for key, value in whole.items()
        if isinstance(declared.get(key), Mapping) and declared[key].get("type") in _PLAIN
    }
    if texts:
        yield {**whole, **texts}, False
    for _, wrong in wrong_arguments(schema, made):
        yield wrong, False
    if UNKNOWN not in declared:
        yield {**made, UNKNOWN: 1}, True


def _one(schema: Any, root: Mapping[str, Any]) -> Any:
    """A value that fits, with one item where a list may be empty."""
    value = sample(schema, root)
    return [sample(schema.get("items", {}), root)] if value == [] and isinstance(schema, Mapping) else value


def _expanded(template: str) -> Iterator[str]:
    """A URI template with a text, and with a number, for every variable in its path; what follows `?` is left out."""
    for value in ("text", "7"):
        yield _VARIABLE.sub(lambda found, value=value: "" if found[1] else value, template)  # type: ignore[misc] # mypy sees no str in a default


def _prompt_arguments(prompt: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The required ones, all of them, and none."""
    listed = [one for one in prompt.get("arguments") or () if isinstance(one, Mapping)]
    yield {str(one["name"]): "text" for one in listed if one.get("required")}
    yield {str(one["name"]): "7" for one in listed}
    yield {}
