"""Two versions of a server side by side: what they offer, and what the same calls answer. What differs is told as callers would meet it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, ServerError
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.channels.contract import Contract, compare
from mcpfactory_pipeline.isolation.environ import clean_environ
from mcpfactory_pipeline.migration.requests import ONLY_READING, CallPermission, plan_requests
from mcpfactory_runtime.client import Client, ConnectionLostError, ProtocolError
from mcpfactory_runtime.protocol.errors import McpError

__all__ = [
    "MIGRATED",
    "ORIGINAL",
    "Likeness",
    "Observer",
    "ServerImage",
    "compare_images",
    "compare_observed",
    "compare_versions",
    "observe_command",
    "observe_file",
]

HOST: Final = Path(__file__).with_name("host.py")
ORIGINAL: Final = "the original"
MIGRATED: Final = "the migrated server"
# Members of answers and of what is offered that stand beside the data: metadata, hints for clients, words.
_BESIDE: Final = ("_meta", "annotations", "description")
_PARTS: Final = frozenset(
    {"content", "contents", "messages", "resource"}
)  # whose values are of the protocol, and no data
_CONTRACT: Final = ("name", "mimeType")
_KEYS: Final = frozenset({"uri", "uriTemplate", "arguments", *_CONTRACT})
_OWN_META: Final = frozenset({"fastmcp", "_fastmcp"})  # what a library says of itself
_SPELT: Final = "its text is JSON that is spelt otherwise; the data are the same"
_PREFIX: Final = re.compile(r"Error (executing|calling) tool '?[\w.-]+'?(: )?|Error (reading|rendering)[^:]*(: )?")


@dataclass(frozen=True, slots=True)
class Observer:
    """How a version is looked at: what it is called in an error, seconds for its start with all calls, and what may be called.

    `hint` is what to do where it cannot be asked.
    """

    about: str
    seconds: float
    permission: CallPermission
    hint: str = "--python names the interpreter of its environment"


@dataclass(frozen=True, slots=True)
class ServerImage:
    """What a server offers and answers: tools, resources, templates and prompts by name, and answers by the call that was made.

    `strays` are names of calls with an argument that the tool does not have; `called` has the tool of each call; `server` is what it
    says of itself.
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    strays: frozenset[str] = frozenset()
    called: Mapping[str, str] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two versions are. `contract` are differences in what is offered, `calls` in what is answered, each as a sentence.

    `more` is what is offered besides, and breaks no call. `wording` are texts that differ where nothing else does: descriptions, titles, the
    version of the server, the words of errors, how JSON is spelt, metadata. `stricter` are calls with an argument that the tool does not have, which only the first version takes. `unsteady` are
    calls that the first version answers differently each time. `unshown` are tools of which no call shows that they answer alike, each with
    the reason: that nobody may see equality where nobody looked. `made` counts the calls.
    """

    contract: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    wording: tuple[str, ...] = ()
    stricter: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    unshown: tuple[str, ...] = ()
    made: int = 0

    @property
    def same(self) -> bool:
        """Whether callers see the same, but for wording, in what was compared."""
        return not self.contract and not self.calls

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "verdict": self.verdict}

    @property
    def verdict(self) -> str:
        """What was seen, in words: no more than that."""
        if not self.same:
            return "callers would notice"
        if not self.unshown:
            return "callers see the same"
        alike = "they list the same" + (", and these answers are the same" if self.made else "; no call was made")
        return f"{alike}; nothing was shown of {pluralize(len(self.unshown), 'tool')}"


async def compare_versions(
    before: str,
    after: str,
    *,
    folder: Path,
    python: str = sys.executable,
    seconds: float = 60.0,
    permission: CallPermission = ONLY_READING,
) -> Likeness:
    """Return how alike two sources are, each served in a folder that has the files beside it. The first is asked twice.

    Args:
        before: the source that there was.
        after: what became of it.
        folder: an absolute path; a file of each is there while it is served.
        python: the interpreter of the server's environment.
        seconds: for each start with all its calls.
        permission: which tools may be called.

    Raises:
        ServerError: one of them does not start, or does not speak.
        ConfigError: a call was given of a tool that the first one does not list.
    """
    return await compare_observed(
        lambda: observe_file(before, folder, python, Observer(ORIGINAL, seconds, permission)),
        lambda: observe_file(after, folder, python, Observer(MIGRATED, seconds, permission)),
        permission,
    )


async def compare_observed(
    before: Callable[[], Awaitable[ServerImage]],
    after: Callable[[], Awaitable[ServerImage]],
    permission: CallPermission,
) -> Likeness:
    """Return how alike two servers are that can be observed; the first is observed twice.

    Raises:
        ConfigError: a call was given of a tool that the first one does not list.
    """
    first = await before()
    known = {str(tool["name"]) for tool in first.tools}
    if strange := sorted({str(one["tool"]) for one in permission.examples} - known):
        raise ConfigError(
            f"there are calls of tools that the server does not list: {', '.join(strange[:5])}",
            hint=f"it lists {', '.join(sorted(known)[:10])}",
        )
    return compare_images(first, await after(), await before())


async def observe_file(text: str, folder: Path, python: str, observer: Observer) -> ServerImage:
    """Return what a source offers and answers, started as a file in that folder.

    Raises:
        ServerError: it does not start, or does not speak.
    """
    import mcpfactory_runtime  # noqa: PLC0415 - its place is handed to the other interpreter

    runtime = str(Path(mcpfactory_runtime.__file__).parent.parent)
    with tempfile.TemporaryDirectory(prefix="mcpfactory-migration-") as work:
        file = folder / f".mcpfactory-{Path(work).name}.py"
        file.write_text(text, encoding="utf-8")
        environ = {
            **clean_environ(Path(work)),
            "PYTHONPATH": os.pathsep.join([runtime, str(_package_root(folder))]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            return await observe_command([python, str(HOST), str(file)], folder, environ, observer)
        finally:
            file.unlink(missing_ok=True)


async def observe_command(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], observer: Observer
) -> ServerImage:
    """Return what the server that a command starts in a folder offers and answers.

    Raises:
        ServerError: it does not start, or does not speak.
    """
    try:
        async with asyncio.timeout(observer.seconds):
            async with Client.connect_stdio(
                list(command), env=dict(environ), cwd=folder, inherit=False, mode="legacy", timeout=observer.seconds
            ) as client:
                return await _image(client, observer.permission)
    except (ConnectionLostError, ProtocolError, McpError, TimeoutError, OSError) as error:
        told = " ".join(str(error).split())[-400:] or type(error).__name__
        raise ServerError(f"{observer.about} could not be asked: {told}", hint=observer.hint) from error


def _package_root(folder: Path) -> Path:
    """Return where the package that the folder is in is imported from; the folder itself where it is in none."""
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


async def _image(client: Client, permission: CallPermission) -> ServerImage:
    offers = client.capabilities
    tools = await client.list_tools(keep_invalid=True) if "tools" in offers else []
    resources = await client.list_resources() if "resources" in offers else []
    templates = await client.list_resource_templates() if "resources" in offers else []
    prompts = await client.list_prompts() if "prompts" in offers else []
    questions = plan_requests(tools, resources, templates, prompts, permission)
    answers = {one.name: await _answer(client, one.method, dict(one.params)) for one in questions}
    strays = frozenset(one.name for one in questions if one.stray)
    called = {one.name: one.tool for one in questions if one.tool}
    offered = {str(one.get("uri")): one for one in resources} | {str(one.get("uriTemplate")): one for one in templates}
    server = {**client.server_info, "instructions": client.instructions}
    return ServerImage(
        tuple(tools), offered, {str(one["name"]): one for one in prompts}, answers, strays, called, server
    )


async def _answer(client: Client, method: str, params: dict[str, Any]) -> Any:
    try:
        return await client.request(method, params)
    except McpError as error:
        return {"isError": True, "content": [{"type": "text", "text": str(error)}]}


def compare_images(first: ServerImage, second: ServerImage, again: ServerImage | None = None) -> Likeness:
    """Return how alike two servers are. Pure."""
    contract, more, wording = _contract(first, second)
    calls: list[str] = []
    stricter: list[str] = []
    unsteady: list[str] = []
    beside: Counter[str] = Counter()
    for call, answer in first.answers.items():
        if again is not None and not _same_data(again.answers.get(call), answer):
            unsteady.append(call)
        elif call not in second.answers:
            calls.append(f"{call}: it cannot be made any more")
        elif call in first.strays and not answer.get("isError") and second.answers[call].get("isError"):
            stricter.append(call)
        elif said := _differs(answer, second.answers[call]):
            (wording if said.startswith("the words") else calls).append(f"{call}: {said}")
        else:
            beside.update(f"{first.called.get(call, call)}: {said}" for said in _beside(answer, second.answers[call]))
    wording += [f"{said} ({count} calls)" if count > 1 else said for said, count in beside.items()]
    return Likeness(
        tuple(contract),
        tuple(calls),
        tuple(more),
        tuple(wording),
        tuple(stricter),
        tuple(unsteady),
        tuple(_unshown(first, frozenset(unsteady))),
        len(first.answers),
    )


def _unshown(first: ServerImage, unsteady: frozenset[str]) -> Iterator[str]:
    """Tools of which no call succeeded steadily, each with the reason."""
    for name in (str(tool["name"]) for tool in first.tools):
        made = {call: first.answers[call] for call, tool in first.called.items() if tool == name}
        good = [call for call, answer in made.items() if not answer.get("isError")]
        if not made:
            yield f"{name}: it was not called, as it is not marked readOnlyHint and nobody gave calls of it"
        elif not good:
            yield f"{name}: no call of it succeeded"
        elif not set(good) - unsteady:
            yield f"{name}: it answers differently each time"


def _contract(first: ServerImage, second: ServerImage) -> tuple[list[str], list[str], list[str]]:
    contract: list[str] = []
    more: list[str] = []
    wording: list[str] = []
    for change in compare(Contract(first.tools), Contract(second.tools)).changes:
        kinds = {"cosmetic": wording, "additive": more, "breaking": contract}
        kinds[change.kind].append(f"tool {change.tool}: {change.message}")
    for what, before, after in (
        ("resource", first.resources, second.resources),
        ("prompt", first.prompts, second.prompts),
    ):
        for name in sorted({*before, *after}):
            if name not in after or name not in before:
                contract.append(f"{what} {name}: {'it is gone' if name not in after else 'it is new'}")
                continue
            was, now = before[name], after[name]
            changed = (key for key in _CONTRACT if was.get(key) != now.get(key))
            contract += [f"{what} {name}: {key} was {was.get(key)!r} and is {now.get(key)!r}" for key in changed]
            if _arguments(was) != _arguments(now):
                contract.append(f"{what} {name}: its arguments differ")
            wording += [f"{what} {name}: {said}" for said in _other_words(was, now)]
    wording += [
        f"server: its {key} was {first.server.get(key)!r} and is {second.server.get(key)!r}"
        for key in dict.fromkeys((*first.server, *second.server))
        if (first.server.get(key) or None) != (second.server.get(key) or None)
    ]
    return contract, more, wording


def _arguments(item: Mapping[str, Any]) -> list[tuple[Any, bool]]:
    return [(one.get("name"), bool(one.get("required"))) for one in item.get("arguments") or ()]


def _other_words(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """How what is said of a resource or a prompt differs, and of the arguments that both versions of it have."""
    for key in sorted({*was, *now} - _KEYS):
        if _said(was, key) != _said(now, key):
            yield f"its {key} {'differs' if _said(now, key) else 'is gone'}"
    before, after = ({one.get("name"): one for one in item.get("arguments") or ()} for item in (was, now))
    for name in (one for one in before if one in after):
        for key in sorted({*before[name], *after[name]} - {"name", "required"}):
            if _said(before[name], key) != _said(after[name], key):
                yield f"the {key} of its argument {name} {'differs' if _said(after[name], key) else 'is gone'}"


def _said(item: Mapping[str, Any], key: str) -> Any:
    """Return a member, and None for one that says nothing."""
    value = item.get(key)
    if key == "_meta" and isinstance(value, Mapping):
        value = {name: one for name, one in value.items() if name not in _OWN_META}
    return value if isinstance(value, bool | int | float) and value is not False else value or None


def _differs(first: Any, second: Any) -> str:
    """Return how two answers differ; "" where callers see the same."""
    if bool(first.get("isError")) != bool(second.get("isError")):
        return f"it {'fails' if first.get('isError') else 'succeeds'} there and {'fails' if second.get('isError') else 'succeeds'} here"
    if first.get("isError"):
        return (
            ""
            if _texts(first) == _texts(second)
            else f"the words of the error differ: {_short(first)} and {_short(second)}"
        )
    if _same_data(first, second):
        return ""
    structured = first.get("structuredContent")
    if (
        structured is not None
        and _canonical(structured) == _canonical(second.get("structuredContent"))
        and _canonical(_media(first)) == _canonical(_media(second))
    ):
        return f"the words of the content differ: {_short(first.get('content'))} and {_short(second.get('content'))}"
    return f"{_short(first)} there and {_short(second)} here"


def _beside(first: Any, second: Any) -> Iterator[str]:
    """How two answers differ that hold the same data."""
    if first.get("isError"):
        return
    if _canonical(_plain(first, str)) != _canonical(_plain(second, str)):
        yield _SPELT
    one, other = _others(first), _others(second)
    yield from (f"the {key} of its answer differs" for key in _BESIDE if one.get(key) != other.get(key))


def _others(answer: Any) -> dict[str, list[Any]]:
    """Return what stands beside the data, by the names of its members, in its order."""
    found: dict[str, list[Any]] = {}
    if isinstance(answer, list):
        for part in answer:
            for key, values in _others(part).items():
                found.setdefault(key, []).extend(values)
    elif isinstance(answer, dict):
        for key, value in answer.items():
            if key in _BESIDE and _said(answer, key) is not None:
                found.setdefault(key, []).append(_said(answer, key))
            for inner, values in (_others(value) if key in _PARTS else {}).items():
                found.setdefault(inner, []).extend(values)
    return found


def _media(answer: Any) -> list[Any]:
    """Return what of a content is no text."""
    return [
        one
        for one in _plain(answer.get("content") or [], str)
        if not isinstance(one, dict) or one.get("type") != "text"
    ]


def _texts(answer: Any) -> list[str]:
    return [
        _PREFIX.sub("", str(block.get("text", ""))) for block in answer.get("content") or () if isinstance(block, dict)
    ]


def _short(answer: Any) -> str:
    if isinstance(answer, dict):
        answer = answer.get("structuredContent") or answer.get("content") or answer
    return json.dumps(answer, ensure_ascii=False)[:160]


def _same_data(first: Any, second: Any) -> bool:
    """Whether two answers hold the same data, however JSON in their texts is spelt."""
    return _canonical(_plain(first, _parsed)) == _canonical(_plain(second, _parsed))


def _plain(answer: Any, read: Callable[[str], Any]) -> Any:
    """Return an answer without what stands beside its data, and without members of the protocol that say nothing. Data stay whole."""
    if isinstance(answer, list):
        return [_plain(one, read) for one in answer]
    if not isinstance(answer, dict):
        return answer
    return {key: _plain_member(key, value, read) for key, value in answer.items() if _says_something(key, value)}


def _says_something(key: str, value: Any) -> bool:
    """Return whether a member of an answer is a part of its data, or says something about them: `isError: false` says nothing."""
    if key in _BESIDE or key == "resultType" or value is None:
        return False
    return key == "structuredContent" or not (value is False or value in ([], {}))


def _plain_member(key: str, value: Any, read: Callable[[str], Any]) -> Any:
    if key in _PARTS:
        return _plain(value, read)
    return read(value) if key == "text" and isinstance(value, str) else value


def _parsed(text: str) -> Any:
    """Return the data that a text holds as JSON; the text where it holds none."""
    if text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        data = json.loads(text)
        _canonical(data)
    except (ValueError, RecursionError):
        return text
    return data


def _canonical(data: Any) -> str:
    """Return one text for equal data: members in order; `true` is not 1, and 1.0 is."""
    return json.dumps(_whole_numbers(data), sort_keys=True)


def _whole_numbers(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _whole_numbers(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_whole_numbers(one) for one in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data
