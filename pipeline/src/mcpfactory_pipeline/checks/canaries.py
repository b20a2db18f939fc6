"""Canary arguments: values that a careless tool uses as a file, a command or an address of this machine.

Canaries are harmless: files with known words, a loopback listener, and commands and templates that print a product. If
a tool reads the canary file in the temporary folder, the tool is then asked for a canary file in the home folder. The
reason is that a server may be designed to read the temporary folder. A tool may also move or delete the files that it
is asked for, so both files are made for this purpose. Canaries are sent only to servers on this machine, and only to
tools that `validate` calls anyway.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.sample_files import HTML, SampleFiles
from mcpfactory_runtime.schemas.walk import properties_of
from mcpfactory_runtime.types import Json

CanaryKind = Literal["file", "command", "template", "address", "address form", "query", "option"]

WORDS: Final = "mcpfactory-bait-7c1d90e2: a reader of this left its folder"
_FACTORS: Final = (40013, 3)
_PRODUCT: Final = f"bait{_FACTORS[0] * _FACTORS[1]}"
_SUM: Final = f"bait$(({_FACTORS[0]}*{_FACTORS[1]}))"  # only a shell computes this expression and prints the product
COMMANDS: Final = (f"x; echo {_SUM} #", f"$(echo {_SUM})", f"x' ; echo {_SUM} ; '")
# Only Python and JavaScript interpreters compute these expressions; calculators have no imports.
CODE: Final = (
    f"'bait'+str(__import__('operator').mul({_FACTORS[0]},{_FACTORS[1]}))",
    f"'bait'+Function('return {_FACTORS[0]}*{_FACTORS[1]}')()",
)
# Only template engines compute these expressions: Jinja, JavaScript, FreeMarker, Ruby, EJS, and f-strings of Python.
_MULTIPLY: Final = f"{_FACTORS[0]}*{_FACTORS[1]}"
TEMPLATES: Final = (
    f"bait{{{{{_MULTIPLY}}}}}bait${{{_MULTIPLY}}}bait#{{{_MULTIPLY}}}",
    f"bait<%= {_MULTIPLY} %>",
    f"bait{{{_MULTIPLY}}}",
)
_REACHED: Final = "bait<class 'str'>"  # str.format prints this text only if a placeholder reaches a module's variables
_MAX_PLACEHOLDERS: Final = 3
_PLACEHOLDER: Final = re.compile(r"\{(\w+)[^{}\"]*\}")
_PATHS: Final = re.compile(r"(?:^|_)(?:path|file|filename|filepath|dir|directory|folder|document|template)s?(?:$|_)")
_ADDRESSES: Final = re.compile(r"(?:^|_)(?:url|uri|href|link|endpoint|webhook|site|website)s?(?:$|_)")
_RUNS_COMMANDS: Final = re.compile(
    r"\b(shell|bash|subprocess|repl|ssh|cmd|command|commands|exec|execute[sd]?|executing)\b"
    r"|\b(run|runs|running)\b[^.]{0,60}\b(code|scripts?|programs?|python|javascript)\b",
    re.IGNORECASE,
)
_RUNS_CODE: Final = re.compile(r"\b(code|script|python|javascript|interpreter)\b", re.IGNORECASE)
_TEMPLATED: Final = re.compile(r"\b(templat\w*|jinja\w*|mustache|handlebars|liquid|expressions?)\b", re.IGNORECASE)
_OPTIONS: Final = re.compile(r"(?:^|_)(?:option|flag|switch|arg|argument|param|parameter)s?(?:$|_)")
_EVALUATES: Final = re.compile(r"\b(eval|evaluate[sd]?|evaluating)\b", re.IGNORECASE)
_FREE: Final = frozenset({"type", "title", "description", "minLength", "maxLength", "default", "examples", "format"})
MAX_TOOLS: Final = 5  # maximum number of tools that get each kind of canary
MAX_ARGUMENTS: Final = 2  # maximum number of arguments per tool that get canaries
VARIABLE: Final = re.compile(r"\{[+#./;?&]?([^{}]+)\}")  # variables of a URI template (RFC 6570)
_DEEP: Final = "../" * 16
_PAGE: Final = "/page.html"
_RESPONSE: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class CanaryProbe:
    """Tool call or resource read with a canary as one of its values. `target` is the tool's name or the URI template.

    If `confirms` is set, the probe names a file in a second folder. A confirming probe is sent only after the server
    used a canary of the same kind. `stated` is True if the server states that the value names a file.
    """

    kind: CanaryKind
    target: str
    argument: str
    method: str
    params: Mapping[str, Any]
    confirms: bool = False
    stated: bool = False

    @property
    def place(self) -> tuple[str, str]:
        """Return the target and the argument."""
        return self.target, self.argument


@dataclass(frozen=True, slots=True)
class CanaryResult:
    """The request and response of a probe.

    `taken` is True if the answer or the listener shows that the server used the canary.
    """

    probe: CanaryProbe
    exchange: WireExchange
    taken: bool


class Canaries:
    """The canary file and the listener, as an asynchronous context manager."""

    def __init__(self) -> None:
        self._visited = False
        self._folders: list[Path] = []
        self.url = ""
        self.samples = SampleFiles()

    async def __aenter__(self) -> Canaries:
        self._folders.append(Path(tempfile.mkdtemp(prefix="mcpfactory-bait-")))
        with suppress(OSError):  # without a second file, no probe confirms the first
            second = Path.home() / self._folders[0].name
            second.mkdir(mode=0o700)
            self._folders.append(second)
        for file in self.files:
            file.write_text(WORDS + "\n", encoding="utf-8")
        self._listener = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        await self._listener.wait_closed()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        self.samples.remove()

    @property
    def files(self) -> list[Path]:
        """Return the canary file in the temporary folder, and the file in the home folder if that folder is writable."""
        return [folder / "bait.txt" for folder in self._folders]

    @property
    def url_forms(self) -> list[str]:
        """Return URLs of the listener, with other forms of its address than 127.0.0.1."""
        return [self.url.replace("127.0.0.1", form) for form in ("127.1", "2130706433", "[::ffff:127.0.0.1]")]

    @property
    def secrets(self) -> dict[str, str]:
        """Return the values that reports must mask, because the values differ in each run."""
        return {
            "folder of the bait": self._folders[0].name,
            "address of the bait": self.url,
            "folder of the samples": self.samples.root.name,
        }

    @property
    def page(self) -> str:
        """Return the URL of a valid page, for tools that need an address."""
        return self.url + _PAGE

    def taken(self, kind: CanaryKind, received: str) -> bool:
        """Return True if the answer shows that the server used the canary. Call this method once after each probe."""
        visited, self._visited = self._visited, False
        return {
            "file": WORDS in received,
            "command": _PRODUCT in received,
            "template": _PRODUCT in received or _REACHED in received,
            "address": visited,
            "address form": visited,
        }[kind]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._visited = True
        try:
            request = await asyncio.wait_for(reader.read(65536), 1)
            if request.partition(b" ")[2].startswith(_PAGE.encode()):
                self._visited = False  # a valid call, not a canary
            writer.write(_RESPONSE + HTML.encode())
            await writer.drain()
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()


def canary_tool_probes(
    tools: Sequence[tuple[str, Json]],
    made: Mapping[str, Mapping[str, Any]],
    canaries: Canaries,
) -> Iterator[CanaryProbe]:
    """Yield calls of tools that answered before; each call contains one canary.

    Args:
        tools: (name, tool) pairs of the tools that may be called.
        made: tool → arguments of a call that the tool answered, for all `tools`.
        canaries: the file and the listener.
    """
    files = [(at > 0, file) for at, file in enumerate(canaries.files)]
    kinds: tuple[tuple[CanaryKind, _Takes, bool, tuple[str, ...] | _Values], ...] = (
        *(("file", _takes_path, confirms, _ways(file)) for confirms, file in files),
        *(("file", _takes_address, confirms, (file.as_uri(),)) for confirms, file in files),
        ("address", _takes_address, False, (f"{canaries.url}/bait",)),
        ("address form", _takes_address, False, tuple(canaries.url_forms)),
        ("command", _takes_command, False, COMMANDS),
        ("command", _takes_code, False, CODE),
        ("template", _takes_template, False, TEMPLATES),
        ("template", takes_text, False, _placeholder_values),
    )
    for kind, takes, confirms, values in kinds:
        chosen = [(name, tool, found) for name, tool in tools if (found := takes(name, tool))]
        # Tools with a path in their description come first, because only some tools are tested.
        for name, tool, found in sorted(chosen, key=lambda one: not _states_path(one[1], one[2][0]))[:MAX_TOOLS]:
            for argument in found[:MAX_ARGUMENTS]:
                for value in values(tool, argument) if callable(values) else values:
                    params = {"name": name, "arguments": {**made[name], argument: value}}
                    stated = kind == "file" and _states_path(tool, argument)
                    yield CanaryProbe(kind, name, argument, "tools/call", params, confirms, stated)


def _ways(file: Path) -> tuple[str, str, str]:
    """Return three paths to a file: a relative path for any folder, its encoded form, and the absolute path."""
    deep = f"{_DEEP}{str(file).lstrip('/')}"
    return deep, _encoded(deep), str(file)


def _encoded(path: str) -> str:
    """Percent-encode a path, including dots: some servers search for dots before they decode."""
    return quote(path, safe="").replace(".", "%2e")


def name_words(name: str) -> str:
    """Return a name as words in lower case: `runCmd`, `run-cmd` and `run_cmd` give `run cmd`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").replace("_", " ").lower()


def canary_template_probes(templates: Sequence[Any], canaries: Canaries) -> Iterator[CanaryProbe]:
    """Yield resource reads.

    The value of the first template variable is the canary's path: first plain, then percent-encoded.
    """
    for one in templates[:MAX_TOOLS]:
        text = one.get("uriTemplate") if isinstance(one, dict) else None
        first = VARIABLE.search(text) if isinstance(text, str) else None
        if text is None or first is None:
            continue
        name = first[1].split(",")[0].rstrip("*")
        for confirms, file in enumerate(canaries.files):
            path, encoded, whole = _ways(file)
            for value in (encoded, path, quote(whole, safe="")):
                uri = text[: first.start()] + value + VARIABLE.sub("x", text[first.end() :])
                stated = text.startswith("file:")
                yield CanaryProbe("file", text, name, "resources/read", {"uri": uri}, confirms > 0, stated)


_Takes = Callable[[str, Json], list[str]]
"""Function that returns the names of a tool's arguments that may take a canary."""

_Values = Callable[[Json, str], list[str]]
"""Function that returns the canaries for an argument of a tool."""


def takes_text(_name: str, tool: Json) -> list[str]:
    """Return the names of all free-text arguments, except addresses."""
    return [key for key, address in _free_texts(tool) if not address]


def _takes_path(name: str, tool: Json) -> list[str]:
    """Return the names of the free-text arguments; names that suggest a path come first."""
    return sorted(takes_text(name, tool), key=lambda key: not is_path(key))


def _takes_address(_name: str, tool: Json) -> list[str]:
    return [key for key, address in _free_texts(tool) if address]


def _takes_command(name: str, tool: Json) -> list[str]:
    return [] if _has_purpose(name, tool, _RUNS_COMMANDS, _EVALUATES) else takes_text(name, tool)


def _takes_code(name: str, tool: Json) -> list[str]:
    return [] if _has_purpose(name, tool, _RUNS_COMMANDS, _RUNS_CODE) else takes_text(name, tool)


def _takes_template(name: str, tool: Json) -> list[str]:
    stated = _has_purpose(name, tool, _RUNS_COMMANDS, _RUNS_CODE, _EVALUATES, _TEMPLATED)
    schemas = properties_of(tool.get("inputSchema"))
    return [] if stated else [key for key in takes_text(name, tool) if not _says(schemas, key, _TEMPLATED)]


def takes_operand(name: str, tool: Json) -> list[str]:
    """Return the names of the free-text arguments that are not meant for options of a program."""
    schemas = properties_of(tool.get("inputSchema"))
    stated = _has_purpose(name, tool, _RUNS_COMMANDS)
    return [] if stated else [key for key in takes_text(name, tool) if not _says(schemas, key, _OPTIONS)]


def _says(schemas: Mapping[str, Any], key: str, purpose: re.Pattern[str]) -> bool:
    """Return True if the name or the description of an argument mentions a purpose."""
    schema = schemas.get(key)
    described = str(schema.get("description")) if isinstance(schema, dict) else ""
    return any(purpose.search(form) for text in (key, described) for form in (name_words(text), _joined(text)))


def _placeholder_values(tool: Json, argument: str) -> list[str]:
    """Return format strings that follow the attributes of each placeholder that the texts of the tool name."""
    schema = properties_of(tool.get("inputSchema")).get(argument)
    texts = [tool.get("description"), *(schema.values() if isinstance(schema, dict) else ())]
    names = dict.fromkeys(name for text in texts for name in _PLACEHOLDER.findall(str(text)))
    chosen = list(names)[:_MAX_PLACEHOLDERS]
    return [f"bait{{{name}.__init__.__globals__[__name__].__class__}}" for name in chosen]


def _has_purpose(name: str, tool: Json, *purposes: re.Pattern[str]) -> bool:
    text = f"{name_words(name)}. {tool.get('title')}. {tool.get('description')}"
    return any(purpose.search(text) for purpose in purposes)


def _free_texts(tool: Json) -> Iterator[tuple[str, bool]]:
    """Yield (name, True for an address) for each string argument without restrictions in the schema."""
    for key, value in properties_of(tool.get("inputSchema")).items():
        if isinstance(value, dict) and value.get("type") == "string" and not value.keys() - _FREE:
            yield key, is_address(key) or value.get("format") in ("uri", "url")


def _states_path(tool: Json, argument: str) -> bool:
    """Return True if the tool's texts, or the argument's name or description, mention files or paths."""
    schema = properties_of(tool.get("inputSchema")).get(argument)
    described = schema.get("description") if isinstance(schema, dict) else ""
    told = (argument, str(described), *(str(tool.get(key, "")) for key in ("name", "title", "description")))
    return any(map(is_path, told))


def _joined(text: str) -> str:
    return re.sub(r"\W+", "_", name_words(text))


def is_path(text: str) -> bool:
    """Return True if the name or the description of an argument mentions a file, a folder or a path."""
    return bool(_PATHS.search(_joined(text)))


def is_address(text: str) -> bool:
    """Return True if the name or the description of an argument mentions a URL."""
    return bool(_ADDRESSES.search(_joined(text)))
