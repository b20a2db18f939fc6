"""Overview of a server on one screen: contents, difficulties for models, and suggestions. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from mcpfactory_codegen.describe.curate import BOUND
from mcpfactory_codegen.text import word_group, words
from mcpfactory_runtime.urls import host_port_of, private_target_kind

_HARD: Final = 5  # maximum difficulties to list
_DECISIONS: Final = 3
_REASONS: Final = 3
_ADDRESSES: Final = 1
_VARIABLES: Final = 3
_WIDTH: Final = 80
_INDENT: Final = 5
_MANY_ARGUMENTS: Final = 15
_MANY_TOKENS: Final = 2_000
_SECRETS: Final = frozenset({"cvc", "cvv", "otp", "passcode", "passphrase", "passwd", "password", "totp"})
_SECRETS_OF_LOGINS: Final = frozenset({"pin", "secret"})
_LOGINS: Final = word_group("logins")
_HASH: Final = re.compile(r"_(?=[0-9a-f]*\d)[0-9a-f]{6,8}\Z")

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolDifficulty:
    """A property that makes tools hard to use for models: number of affected tools, and message about the worst tool."""

    code: str
    tools: int
    message: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested decision, and the command or the line of `mcpfactory.toml` that makes the decision."""

    code: str
    message: str
    type: str
    setting: bool = False  # `type` is a line of `mcpfactory.toml`


@dataclass(frozen=True, slots=True)
class Overview:
    """Summary of a server, with the most important `hard` tools and `decisions` first."""

    server: str
    operations: int
    tools: int
    tokens: int
    effects: Mapping[str, int]
    left_out: Mapping[str, int]
    credentials: tuple[str, ...]
    addresses: tuple[str, ...]
    hard: tuple[ToolDifficulty, ...]
    decisions: tuple[Suggestion, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the overview as plain data."""
        return asdict(self)


def overview(server: str, report: Json) -> Overview:
    """Return the overview of a server, also from reports of older versions."""
    tools, skipped = report["tools"], report.get("skipped", ())
    made = {_operation(tool["operation"]) for tool in tools if tool.get("operation")}
    hard = sorted(_difficulties(tools), key=lambda one: -one[0])
    address = report.get("address") or {}
    addresses = {f"{address.get('prefix', '')}_BASE_URL", *(one["variable"] for one in address.get("servers", ()))}
    decisions = (rule(server, report) for rule in _RULES)
    return Overview(
        server=server,
        operations=len(made | {_operation(one) for one in skipped}),
        tools=len(tools),
        tokens=sum(tool["tokens"] for tool in tools),
        effects=dict(Counter(tool["effect"] for tool in tools if "effect" in tool)),
        left_out=dict(Counter(one["reason"] for one in skipped).most_common()),
        credentials=tuple(row["name"] for row in report.get("environment", ()) if row["name"] not in addresses),
        addresses=tuple(_addresses(report)),
        hard=tuple(one for _, one in hard)[:_HARD],
        decisions=tuple(one for one in decisions if one is not None)[:_DECISIONS],
    )


def _operation(operation: Json) -> tuple[str, ...]:
    return operation.get("document", ""), operation["method"], operation["path"]


def _addresses(report: Json) -> Iterator[str]:
    address = report.get("address")
    if not address:
        return
    variable = f"{address['prefix']}_BASE_URL"
    if address["base_url"] or not address.get("servers"):
        yield f"{address['base_url'] or 'unknown'} ({variable})"
    for one in address.get("servers", ()):
        yield f"{one['url']} ({one['variable']}, {_count(one['tools'], 'tool')})"


# --- difficulties for models ---

_HARD_TEXTS: Final = {
    "arguments": (1, f"take more than {_MANY_ARGUMENTS} arguments: {{name}} has {{most}}"),
    "tokens": (2, f"cost more than {_MANY_TOKENS:,} tokens each: {{name}} {{most:,}}"),
    "nested": (1, "require nested objects, such as {name}"),
    "free-form": (1.5, "take values without a description, such as {name}"),
    "undescribed": (3, "have no description, such as {name}"),
    "hash": (3, "differ only by a hash, such as {name}"),
}
"""Weight and text of each difficulty."""


def _amount(code: str, tool: Json) -> int:
    """Return the extent of a difficulty in a tool: a number of arguments or tokens, 1, or 0."""
    arguments, tokens = len(tool["arguments"]), int(tool["tokens"])
    special = {
        "arguments": arguments if arguments > _MANY_ARGUMENTS else 0,
        "tokens": tokens if tokens > _MANY_TOKENS else 0,
        "hash": int(_HASH.search(tool["name"]) is not None),
    }
    return special[code] if code in special else int(code in tool.get("hard", ()))


def _difficulties(tools: Sequence[Json]) -> Iterator[tuple[float, ToolDifficulty]]:
    for code, (weight, said) in _HARD_TEXTS.items():
        found = [(amount, tool["name"]) for tool in tools if (amount := _amount(code, tool))]
        if found:
            most, name = max(found, key=lambda one: one[0])
            message = f"{_count(len(found), 'tool')} {said.format(name=name, most=most)}"
            yield (
                weight * len(found),
                ToolDifficulty(code, len(found), message if len(found) > 1 else _singular(message)),
            )


def _singular(message: str) -> str:
    """Return the message for a single tool, with the verb in the third person and the tool's name as example."""
    subject, verb, rest = message.partition(" tool ")
    word, _, more = rest.partition(" ")
    third = {"have": "has", "are": "is"}.get(word, f"{word}s")
    return f"{subject}{verb}{third} {more}".replace(", such as ", ": ").replace(" each: ", ": ")


# --- suggestions: rules, most important first ---


def _no_address(server: str, report: Json) -> Suggestion | None:
    variable = f"{(report.get('address') or {}).get('prefix', '')}_BASE_URL"
    if not any(row["name"] == variable and row["required"] for row in report.get("environment", ())):
        return None
    return Suggestion("address", "set the base URL of the API: its document has none", f"export {variable}=https://…")


def _private_address(server: str, report: Json) -> Suggestion | None:
    address = report.get("address") or {}
    url = address.get("base_url", "")
    place = host_port_of(url)
    permitted = address.get("allow_private", ())
    if not private_target_kind(url) or not place or place in permitted or place.rpartition(":")[0] in permitted:
        return None
    message = f"allow calls to {url}, which is {private_target_kind(url)}"
    table = "in its [[api]]" if address.get("several") else "below [api]"
    return Suggestion("private-address", message, f'allow_private = ["{place}"]   # {table}', setting=True)


def _secrets_of_people(server: str, report: Json) -> Suggestion | None:
    asking = [(tool["name"], secrets[0]) for tool in report["tools"] if (secrets := [*_secrets(tool)])]
    if not asking:
        return None
    name, secret = asking[0]
    message = f"hide tools that take secrets of people: {_count(len(asking), 'tool')}, {name} takes {secret}"
    return Suggestion("secrets", message, f"[tools.{name}] hide = true", setting=True)


def _secrets(tool: Json) -> Iterator[str]:
    """Yield the arguments for secrets of people. An ambiguous name counts only in tools for logins and payments."""
    operation = tool.get("operation") or {}
    about = {
        *words(tool["name"]),
        *words(str(operation.get("path", ""))),
        *words(str(operation.get("operationId", ""))),
    }
    for name, bound in tool["arguments"].items():
        last = (words(name) or ("",))[-1]
        if bound.get("in") != "path" and (last in _SECRETS or (last in _SECRETS_OF_LOGINS and about & _LOGINS)):
            yield name


def _too_many_tokens(server: str, report: Json) -> Suggestion | None:
    offered = report.get("offer") or {}
    shown = (offered.get("profiles") or {}).get(offered.get("profile", "full"), {})
    tokens = shown.get("tokens", sum(tool["tokens"] for tool in report["tools"]))
    if tokens <= BOUND or offered.get("mode") == "search":
        return None
    message = f"let models search the tools instead of reading {tokens:,} tokens"
    ways = ['mode = "search"   # below [server]']
    ways += [f"{ways[0]}; or new with {group['flag']}" for group in report.get("groups", ())]
    shown_way = next((way for way in ways[1:] if len(way) <= _WIDTH - _INDENT), ways[0])
    return Suggestion("tokens", message, shown_way, setting=True)


def _credentials_to_give(server: str, report: Json) -> Suggestion | None:
    wanted = [row["name"] for row in report.get("environment", ()) if row["required"] and row.get("secret", True)]
    if wanted:
        return Suggestion("credentials", f"set credentials: {_list(wanted, 2)}", f"export {wanted[0]}=…")
    schemes = (report.get("credentials") or {}).get("schemes", ())
    if flows := [one for one in schemes if one.get("flows")]:
        return Suggestion("credentials", f"log in by {flows[0]['name']}", f"mcpfactory login {server}")
    if schemes:
        variables = [variable for scheme in schemes for variable in scheme["variables"]]
        return Suggestion("credentials", f"set credentials: {_list(variables, 2)}", f"export {variables[0]}=…")
    return None


def _read_only(server: str, report: Json) -> Suggestion | None:
    destroying = [tool["name"] for tool in report["tools"] if tool.get("effect") == "destroys"]
    if not destroying or (report.get("offer") or {}).get("profile", "full") != "full":
        return None
    message = f"offer only read-only tools: {_count(len(destroying), 'tool')} can destroy, such as {destroying[0]}"
    return Suggestion("read-only", message, 'profile = "read-only"   # below [server]', setting=True)


def _refused_operations(server: str, report: Json) -> Suggestion | None:
    codes = {"operation-invalid", "operation-no-tool", "operation-internal-error"}
    lost = [one for one in report.get("problems", ()) if one["code"] in codes]
    if not lost:
        return None
    message = f"correct the document: {_count(len(lost), 'operation')} did not become tools"
    return Suggestion("left-out", message, f"mcpfactory inspect {server}")


_RULES: Final[tuple[Callable[[str, Json], Suggestion | None], ...]] = (
    _no_address,
    _private_address,
    _secrets_of_people,
    _too_many_tokens,
    _credentials_to_give,
    _refused_operations,
    _read_only,
)


# --- text for a terminal of 80 columns and 24 lines ---


def overview_rows(view: Overview) -> list[tuple[str, str]]:
    """Return the server's contents as pairs of label and text."""
    addresses = _list(view.addresses, _ADDRESSES)
    origin = f" from {_count(view.operations, 'operation')}" if view.operations else ""
    return [
        ("tools", f"{view.tools:,}{origin}{_effects(view.effects)}"),
        ("costs", f"{view.tokens:,} tokens in tools/list"),
        ("left out", _left_out(view.left_out)),
        ("credentials", _list(view.credentials, _VARIABLES) or "none in its document"),
        *([("address", addresses)] if addresses else []),
    ]


def overview_lines(view: Overview) -> list[str]:
    """Return the overview as text: at most 18 lines of at most 80 characters."""
    shown = [_cut(f"{label:13}{text}") for label, text in overview_rows(view)]
    if view.hard:
        shown += ["difficult for models", *(_cut(f"  {one.message}") for one in view.hard)]
    if view.decisions:
        shown.append("suggestions")
    for number, one in enumerate(view.decisions, 1):
        shown += [_cut(f"  {number}. {one.message}"), _cut(f"     {one.type}")]
    if any(one.setting for one in view.decisions):
        shown.append(_cut(f"after you edit servers/{view.server}/mcpfactory.toml: mcpfactory update {view.server}"))
    return shown


def _effects(effects: Mapping[str, int]) -> str:
    words = {"reads": "read", "writes": "write", "destroys": "destroy"}
    said = [f"{effects[kind]:,} {word}" for kind, word in words.items() if effects.get(kind)]
    return f": {', '.join(said)}" if said else ""


def _left_out(reasons: Mapping[str, int]) -> str:
    if not reasons:
        return "nothing"
    said = [f"{count:,} ({reason})" for reason, count in list(reasons.items())[:_REASONS]]
    return ", ".join(said) + (f" and {len(reasons) - _REASONS} other reasons" if len(reasons) > _REASONS else "")


def _list(names: Sequence[str], most: int) -> str:
    shown = list(dict.fromkeys(names))
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
