"""Two versions of a server side by side: what they offer, and what the same calls answer. What differs is told as callers would meet it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ServerError
from mcpfactory_pipeline.base.records import JsonRecord
from mcpfactory_pipeline.channels.contract import Contract, compare
from mcpfactory_pipeline.isolation.environ import clean_environ
from mcpfactory_pipeline.migration.requests import plan_requests
from mcpfactory_runtime.client import Client, ConnectionLostError, ProtocolError
from mcpfactory_runtime.protocol.errors import McpError

__all__ = ["Likeness", "ServerImage", "compare_images", "compare_versions", "observe_file"]

HOST: Final = Path(__file__).with_name("host.py")
_PREFIX: Final = re.compile(r"Error (executing|calling) tool '?[\w.-]+'?(: )?|Error (reading|rendering)[^:]*(: )?")


@dataclass(frozen=True, slots=True)
class ServerImage:
    """What a server offers and answers: tools, resources, templates and prompts by name, and answers by the call that was made.

    `strays` are names of calls with an argument that the tool does not have.
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    strays: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Likeness(JsonRecord):
    """How alike two versions are. `contract` are differences in what is offered, `calls` in what is answered, each as a sentence.

    `more` is what is offered besides, and breaks no call. `wording` are texts that differ where nothing else does: descriptions, titles, the
    words of errors. `stricter` are calls with an argument that the tool does not have, which only the first version takes. `unsteady` are
    calls that the first version answers differently each time. `made` counts the calls.
    """

    contract: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    wording: tuple[str, ...] = ()
    stricter: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    made: int = 0

    @property
    def same(self) -> bool:
        """Whether callers see the same, but for wording."""
        return not self.contract and not self.calls


async def compare_versions(
    before: str, after: str, *, folder: Path, python: str = sys.executable, seconds: float = 60.0
) -> Likeness:
    """Return how alike two sources are, each served in a folder that has the files beside it. The first is asked twice.

    Args:
        before: the source that there was.
        after: what became of it.
        folder: an absolute path; a file of each is there while it is served.
        python: the interpreter of the server's environment.
        seconds: for each start with all its calls.

    Raises:
        ServerError: one of them does not start, or does not speak.
    """
    first = await observe_file(before, folder, "the original", python, seconds)
    again = await observe_file(before, folder, "the original", python, seconds)
    second = await observe_file(after, folder, "the migrated server", python, seconds)
    return compare_images(first, second, again)


async def observe_file(text: str, folder: Path, name: str, python: str, seconds: float) -> ServerImage:
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
            async with asyncio.timeout(seconds):
                async with Client.connect_stdio(
                    [python, str(HOST), str(file)],
                    env=environ,
                    cwd=folder,
                    inherit=False,
                    mode="legacy",
                    timeout=seconds,
                ) as client:
                    return await _image(client)
        except (ConnectionLostError, ProtocolError, McpError, TimeoutError, OSError) as error:
            told = " ".join(str(error).split())[-400:] or type(error).__name__
            raise ServerError(
                f"{name} could not be asked: {told}", hint="--python names the interpreter of its environment"
            ) from error
        finally:
            file.unlink(missing_ok=True)


def _package_root(folder: Path) -> Path:
    """Return where the package that the folder is in is imported from; the folder itself where it is in none."""
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


async def _image(client: Client) -> ServerImage:
    offers = client.capabilities
    tools = await client.list_tools(keep_invalid=True) if "tools" in offers else []
    resources = await client.list_resources() if "resources" in offers else []
    templates = await client.list_resource_templates() if "resources" in offers else []
    prompts = await client.list_prompts() if "prompts" in offers else []
    questions = plan_requests(tools, resources, templates, prompts)
    answers = {one.name: await _answer(client, one.method, dict(one.params)) for one in questions}
    strays = frozenset(one.name for one in questions if one.stray)
    offered = {str(one.get("uri")): one for one in resources} | {str(one.get("uriTemplate")): one for one in templates}
    return ServerImage(tuple(tools), offered, {str(one["name"]): one for one in prompts}, answers, strays)


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
    for call, answer in first.answers.items():
        if again is not None and _plain(again.answers.get(call)) != _plain(answer):
            unsteady.append(call)
        elif call not in second.answers:
            calls.append(f"{call}: it cannot be made any more")
        elif call in first.strays and not answer.get("isError") and second.answers[call].get("isError"):
            stricter.append(call)
        elif said := _differs(answer, second.answers[call]):
            (wording if said.startswith("the words") else calls).append(f"{call}: {said}")
    return Likeness(
        tuple(contract), tuple(calls), tuple(more), tuple(wording), tuple(stricter), tuple(unsteady), len(first.answers)
    )


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
            changed = (key for key in ("name", "mimeType") if was.get(key) != now.get(key))
            contract += [f"{what} {name}: {key} was {was.get(key)!r} and is {now.get(key)!r}" for key in changed]
            if _arguments(before[name]) != _arguments(after[name]):
                contract.append(f"{what} {name}: its arguments differ")
            if before[name].get("description") != after[name].get("description"):
                wording.append(f"{what} {name}: its description differs")
    return contract, more, wording


def _arguments(item: Mapping[str, Any]) -> list[tuple[Any, bool]]:
    return [(one.get("name"), bool(one.get("required"))) for one in item.get("arguments") or ()]


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
    one, other = _plain(first), _plain(second)
    if one == other:
        return ""
    if first.get("structuredContent") is not None and first["structuredContent"] == second.get("structuredContent"):
        return f"the words of the content differ: {_short(first)} and {_short(second)}"
    return f"{_short(first)} there and {_short(second)} here"


def _texts(answer: Any) -> list[str]:
    return [
        _PREFIX.sub("", str(block.get("text", ""))) for block in answer.get("content") or () if isinstance(block, dict)
    ]


def _short(answer: Any) -> str:
    return json.dumps(answer.get("structuredContent") or answer.get("content") or answer, ensure_ascii=False)[:160]


def _plain(answer: Any) -> Any:
    """Return an answer without what says nothing: the spelling of JSON in a text, empty members, metadata."""
    if isinstance(answer, dict):
        kept = {
            key: _plain(value)
            for key, value in answer.items()
            if key not in {"_meta", "annotations", "resultType", "description"} or key in {"structuredContent"}
        }
        return {key: value for key, value in kept.items() if value not in (None, [], {}, False)}
    if isinstance(answer, list):
        return [_plain(one) for one in answer]
    if isinstance(answer, str) and answer[:1] in {"{", "["}:
        try:
            return json.loads(answer)
        except ValueError:
            return answer
    return answer
