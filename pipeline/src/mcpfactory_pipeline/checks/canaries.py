"""Arguments that a careful tool takes for mere values, and a careless one for a file, a command or an address of this machine.

What is laid out is harmless and ours: a file with known words, a listener on loopback that notes who comes, and commands that
print the product of two numbers. Whoever reads the file is asked for one of Python's own files as well, which every machine with us
has: a server that is there for the folder of temporary files reads the first and not the second. Only a server that was started here is tried, and only tools that are called anyway.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

from mcpfactory_pipeline.checks.exchange import Json

BaitKind = Literal["file", "command", "address"]

WORDS: Final = "mcpfactory-bait-7c1d90e2: whoever reads this left its folder"
_ELSEWHERE: Final = Path(os.__file__)  # far from all folders of temporary files; nobody needs to write it
_FACTORS: Final = (40013, 3)
_PRODUCT: Final = f"bait{_FACTORS[0] * _FACTORS[1]}"
_SUM: Final = f"bait$(({_FACTORS[0]}*{_FACTORS[1]}))"  # a shell prints the product; nobody else writes it so
COMMANDS: Final = (f"x; echo {_SUM} #", f"$(echo {_SUM})", f"x' ; echo {_SUM} ; '")
_PATHS: Final = re.compile(r"(?:^|_)(?:path|file|filename|filepath|dir|directory|folder|document|template)s?(?:$|_)")
_ADDRESSES: Final = re.compile(r"(?:^|_)(?:url|uri|href|link|endpoint|webhook|site|website)s?(?:$|_)")
_RUNS_COMMANDS: Final = re.compile(
    r"\b(shell|bash|subprocess|repl|ssh|cmd|command|commands|exec|execute[sd]?|executing|eval|evaluate[sd]?|evaluating)\b"
    r"|\b(run|runs|running)\b[^.]{0,60}\b(code|scripts?|programs?|python|javascript)\b",
    re.IGNORECASE,
)
_FREE: Final = frozenset({"type", "title", "description", "minLength", "maxLength", "default", "examples", "format"})
_MOST_TOOLS: Final = 5  # that are tried with each kind
_MOST_ARGUMENTS: Final = 2  # of one tool
_VARIABLE: Final = re.compile(r"\{[+#./;?&]?([^{}]+)\}")  # of a URI template (RFC 6570)
_DEEP: Final = "../" * 16


@dataclass(frozen=True, slots=True)
class Temptation:
    """A call of a tool, or a read of a resource, with a bait as one of its values; `tool` is the template's URI of a resource.

    One that `confirms` is for whoever took another bait of the kind: a file far from the first one.
    """

    kind: BaitKind
    tool: str
    argument: str
    method: str
    params: Mapping[str, Any]
    confirms: bool = False


class Bait:
    """The file and the listener. An asynchronous context manager.

    Attributes:
        file: the file.
        url: where the listener is.
    """

    def __init__(self) -> None:
        self._visited = False
        self._folder = ""
        self.file = Path()
        self.url = ""

    async def __aenter__(self) -> Bait:
        self._folder = tempfile.mkdtemp(prefix="mcpfactory-bait-")
        self.file = Path(self._folder, "bait.txt")
        self.file.write_text(WORDS + "\n", encoding="utf-8")
        self._listener = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        await self._listener.wait_closed()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def secrets(self) -> dict[str, str]:
        """What differs from time to time, and therefore stands in no report."""
        return {"folder of the bait": self._folder, "address of the bait": self.url}

    def taken(self, kind: BaitKind, received: str) -> bool:
        """Whether the answer to a temptation shows that the bait was taken. Asked once after each."""
        visited, self._visited = self._visited, False
        read = WORDS in received or _words_elsewhere() in received
        return {"file": read, "command": _PRODUCT in received, "address": visited}[kind]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._visited = True
        try:
            await asyncio.wait_for(reader.read(65536), 1)
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbait"
            )
            await writer.drain()
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()


def tempt(tools: Sequence[tuple[str, Json]], made: Mapping[str, Mapping[str, Any]], bait: Bait) -> Iterator[Temptation]:
    """Yield calls of tools that answered before, each with one bait.

    Args:
        tools: (name, tool) of each.
        made: tool → arguments that it answered to. Tools that do not say that they read only are left out by the caller.
        bait: what is laid out.
    """
    kinds: tuple[tuple[BaitKind, bool, tuple[str, ...]], ...] = (
        ("file", False, _ways(bait.file)),
        ("file", True, _ways(_ELSEWHERE)),
        ("address", False, (f"{bait.url}/bait",)),
        ("command", False, COMMANDS),
    )
    for kind, confirms, values in kinds:
        chosen = [(name, tool) for name, tool in tools if name in made and any(_arguments(kind, name, tool))]
        for name, tool in chosen[:_MOST_TOOLS]:
            for argument in list(_arguments(kind, name, tool))[:_MOST_ARGUMENTS]:
                for value in values:
                    arguments = {**made[name], argument: value}
                    params = {"name": name, "arguments": arguments}
                    yield Temptation(kind, name, argument, "tools/call", params, confirms)


def _ways(file: Path) -> tuple[str, str]:
    """Return the paths that lead to a file: out of a folder, and from the root."""
    return f"{_DEEP}{str(file).lstrip('/')}", str(file)


@cache
def _words_elsewhere() -> str:
    """Return what the other file begins with, without the marks that a format may write in another way."""
    try:
        begin = _ELSEWHERE.read_text("utf-8", "replace")[:100]
    except OSError:  # this Python has its own files in an archive: nobody can confirm anything
        return WORDS
    words: list[str] = re.findall(r"[A-Za-z ]+", begin)
    return max(words, key=len)


def _words(name: str) -> str:
    """Return a name as words in lower case: `runCmd`, `run-cmd` and `run_cmd` are `run cmd`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").replace("_", " ").lower()


def tempt_templates(templates: Sequence[Any], bait: Bait) -> Iterator[Temptation]:
    """Yield reads of resources whose templates get the bait's path as their first variable, as it is and percent-encoded."""
    for one in templates[:_MOST_TOOLS]:
        text = one.get("uriTemplate") if isinstance(one, dict) else None
        first = _VARIABLE.search(text) if isinstance(text, str) else None
        if text is None or first is None:
            continue
        name = first[1].split(",")[0].rstrip("*")
        for file in (bait.file, _ELSEWHERE):
            path, whole = _ways(file)
            for value in (quote(path, safe=""), path, quote(whole, safe="")):
                uri = text[: first.start()] + value + _VARIABLE.sub("x", text[first.end() :])
                yield Temptation("file", text, name, "resources/read", {"uri": uri}, file is _ELSEWHERE)


def _arguments(kind: BaitKind, name: str, tool: Json) -> Iterator[str]:
    """Names of the arguments of a tool that a bait may be for: texts of which the schema says little more."""
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if kind == "command" and _RUNS_COMMANDS.search(f"{_words(name)}. {tool.get('title')}. {tool.get('description')}"):
        return  # to run what it is given is what it is for
    for key, value in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(value, dict) or value.get("type") != "string" or value.keys() - _FREE:
            continue
        words = _words(key).replace(" ", "_")
        address = bool(_ADDRESSES.search(words)) or value.get("format") in ("uri", "url")
        if {"file": bool(_PATHS.search(words)) and not address, "address": address, "command": not address}[kind]:
            yield key
