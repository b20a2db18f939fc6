"""Corrected arguments for tools whose calls with guessed arguments failed.

The sources are the names and descriptions of the arguments, sample files and a page for paths and addresses, other
calls that succeeded, and the error message, which may name permitted values or missing arguments.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Final

from mcpfactory_pipeline.checks.call_plan import WITH_SAMPLE, PlannedCall
from mcpfactory_pipeline.checks.canaries import is_address, is_path, name_words
from mcpfactory_pipeline.checks.evidence import RecordedCall, answer_text, sent_arguments
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.jsonschemas import instance_error
from mcpfactory_pipeline.checks.sample_files import SampleFiles
from mcpfactory_pipeline.checks.samples import argument_line, quoted_texts, sample_value, second_guesses
from mcpfactory_runtime.schemas.walk import items_schema_of, properties_of, required_of, resolve, types_of
from mcpfactory_runtime.types import Json

_SECONDS: Final = 2.0  # seconds for all corrected calls of a session
_SECONDS_IF_WORKED: Final = 0.5  # seconds, if at least one tool worked before
_MAX_CALLS: Final = 8  # maximum number of corrected calls per tool
_MAX_DEPTH: Final = 4  # levels; deeper members get plain samples
_MAX_VALUES: Final = 4  # maximum number of values from one error message
_MAX_CHANGED: Final = 2  # maximum number of arguments that get a value from an error message
_MAX_PARTS: Final = 500  # maximum number of schema parts to read per tool, because nested parts multiply
_RANKS: Final = 3  # maximum number of values for one argument
_READ: Final = 2_000  # characters of an error message or a description
_MAX_WORDS: Final = 3  # maximum words of an item in a list; a longer item is a sentence
_BEGINNING: Final = 3  # words of a description that tell the kind of an argument
_STATED: Final = frozenset({"const", "enum", "examples", "example"})
# A suffix such as ".csv", or an abbreviation before "file" or "files", such as "PDF".
_SUFFIX: Final = re.compile(r"(?<![\w/.])\*?\.([a-z][a-z0-9]{1,4})\b|\b([A-Z]{2,5})s?\b(?=(?: [a-z]+)? files?\b)")
_FOLDER: Final = re.compile(r"dir|folder|repo|root|workspace|project", re.IGNORECASE)
_DATE: Final = re.compile(r"\b(?:YYYY|MM|DD|HH)(?:[-/.: T]?(?:YYYY|MM|DD|HH|SS))+", re.IGNORECASE)
_DATE_PARTS: Final = {"YYYY": "2024", "MM": "01", "DD": "31", "HH": "12", "SS": "00"}
_DATE_PART: Final = re.compile("|".join(_DATE_PARTS), re.IGNORECASE)
_TIMESTAMP: Final = re.compile(r"\b(?:ISO|RFC)[ -]?(?:8601|3339)\b", re.IGNORECASE)
_FORMATS: Final = ("date", "email", "hostname", "ipv4", "ipv6", "uri", "uuid")  # formats of JSON Schema
_CHOICES: Final = re.compile(r"\b\w[\w-]*(?:\|\w[\w-]*)+")  # such as component|hook
# A list in brackets, or after a colon, "of", "are" or "use".
_LISTED: Final = re.compile(r"(?:[:：=\[({]|\b(?:of|are|use)\b)\s*((?:(?!\. )[^\[\](){}\n:：=])+)", re.IGNORECASE)
_BULLET: Final = re.compile(r"^[ \t]*[-*•] ([^\n:(]*\w)", re.MULTILINE)
_BETWEEN: Final = re.compile(r"\s*[,;|、]\s*(?:(?:or|and)\s+)?|\s+(?:or|and)\s+")

Send = Callable[[PlannedCall], Awaitable[RecordedCall | None]]
"""Function that makes and records a call; it returns None if no time is left."""


async def correct_failed_calls(
    tools: Mapping[str, Json], calls: Sequence[RecordedCall], send: Send, samples: SampleFiles | None, url: str = ""
) -> list[PlannedCall]:
    """Repeat the calls of tools without a successful call, with corrected arguments; return the successful calls.

    Args:
        tools: name → tool, for the tools that may be called.
        calls: all earlier calls; `send` adds calls.
        send: makes and records a call.
        samples: files for paths; None if the server cannot read files of this machine.
        url: address of a page that the server can request; "" if there is no such page.
    """
    worked = {call.tool for call in calls if not call.failed}
    until = time.monotonic() + (_SECONDS_IF_WORKED if worked else _SECONDS)
    known, corrected = dict[str, Any](), list[PlannedCall]()
    latest = {call.tool: call for call in calls if call.tool in tools and call.tool not in worked}
    for name, call in latest.items():
        source, first = _Corrections(name, tools[name], samples, url), sent_arguments(call)
        tried = [sent_arguments(one) for one in calls if one.tool == name]
        most = len(tried) + _MAX_CALLS
        results = [one.exchange for one in calls if not one.failed]
        todo = [*source.of_error(call), *source.of_texts(first, known, results)] if call.origin != "case" else []
        while todo and len(tried) < most and until - time.monotonic() > call.exchange.milliseconds / 1000:
            arguments = todo.pop(0)
            if arguments in tried or instance_error(arguments, source.schema):
                continue
            tried.append(arguments)
            planned = PlannedCall(name, arguments, "guess", WITH_SAMPLE if source.has_sample(arguments) else "")
            answer = await send(planned)
            if answer is None or answer.exchange.received is None:
                break
            if not answer.failed:
                corrected.append(planned)
                known |= {key: value for key, value in arguments.items() if value != first.get(key)}
                break
            todo = [*source.of_error(answer), *todo]
    return corrected


class _Corrections:
    """Arguments of one tool that may be better than those of a failed call."""

    def __init__(self, name: str, tool: Json, samples: SampleFiles | None, url: str) -> None:
        self.schema = tool["inputSchema"] if isinstance(tool.get("inputSchema"), dict) else {}
        self._description = str(tool.get("description", ""))
        self._texts = f"{name_words(name)}\n{self._description}"[:_READ]
        self._samples = samples
        self._url = url
        self._parts_left = _MAX_PARTS
        self._offered = set[tuple[str, str]]()  # (argument, value) pairs from error messages

    def has_sample(self, arguments: Mapping[str, Any]) -> bool:
        """Return True if the arguments name a sample file or the page."""
        samples = [str(self._samples.root)] if self._samples is not None else []
        return any(one in json.dumps(arguments) for one in [*samples, self._url] if one)

    def of_texts(
        self, sent: Mapping[str, Any], known: Mapping[str, Any], results: Sequence[WireExchange]
    ) -> Iterator[Json]:
        """Yield arguments from the texts of the tool and from other calls."""
        declared = properties_of(self.schema)
        names = [name for name in sent if name in declared]
        sets = [{**sent, **{name: self._value(name, declared[name], rank) for name in names}} for rank in range(_RANKS)]
        yield {**sets[0], **{name: known[name] for name in names if name in known}}
        yield from second_guesses(self.schema, sets[0], results)[:1]
        yield from sets

    def of_error(self, call: RecordedCall) -> Iterator[Json]:
        """Yield the arguments of a call, changed as its error message suggests."""
        text, sent, declared = answer_text(call.exchange)[:_READ], sent_arguments(call), properties_of(self.schema)
        absent = [name for name in declared if name not in sent]
        missing = [name for name in absent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
        for rank in range(_RANKS) if missing else ():
            yield {**sent, **{name: self._value(name, declared[name], rank) for name in missing}}
        guessed = {name: only for name, value in sent.items() if (only := _only_text(value)) is not None}
        used = [*declared, call.tool, *guessed.values()]
        found = dict.fromkeys(chain(_dates(text), quoted_texts(text), _listed(text)))
        values = [value for value in found if not any(value in one for one in used)][:_MAX_VALUES]
        for name in sorted(guessed, key=lambda name: -_relevance(name, text))[:_MAX_CHANGED]:
            for value in values:
                if (name, value) not in self._offered:
                    self._offered.add((name, value))
                    yield {**sent, name: value if isinstance(sent[name], str) else [value]}

    def _value(self, name: str, part: Any, rank: int, depth: int = 0) -> Any:
        """Return a value for an argument or its member; `rank` selects one of several values."""
        self._parts_left -= 1
        if self._parts_left < 0:
            return None
        part = resolve(part, self.schema)
        branches = part.get("anyOf") if isinstance(part, dict) else None
        if isinstance(branches, list):
            first = next((one for one in branches if isinstance(one, dict) and one.get("type") != "null"), {})
            part = {**part, **first}
        if not isinstance(part, dict) or depth > _MAX_DEPTH or not _STATED.isdisjoint(part):
            return sample_value(part, self.schema)
        kinds = types_of(part)
        if members := properties_of(part):
            # An object whose members are all optional often needs one of them.
            needed = required_of(part) or list(members)[:1]
            return {key: self._value(key, members.get(key, {}), rank, depth + 1) for key in needed}
        if "array" in kinds:
            return [self._value(name, items_schema_of(part), rank, depth + 1)]
        options = list(self._options(name, part)) if "string" in kinds else []
        return options[min(rank, len(options) - 1)] if options else sample_value(part, self.schema)

    def _options(self, name: str, part: Mapping[str, Any]) -> Iterator[str]:
        """Yield texts for an argument, best first."""
        described = f"{part.get('description', '')}\n{argument_line(name, self._description)}".strip()[:_READ]
        begins = [name, " ".join(described.split()[:_BEGINNING])]
        if self._samples is not None and any(map(is_path, begins)):
            yield from self._paths(self._samples, name, described)
        if self._url and any(map(is_address, begins)):
            yield self._url
        yield from _dates(f"{name} {described}")
        yield from quoted_texts(described)
        yield from (found.split("|")[0] for found in _CHOICES.findall(described))
        words = {word for text in begins for word in name_words(text).split()}
        yield from (sample_value({"type": "string", "format": one}, {}) for one in _FORMATS if one in words)

    def _paths(self, samples: SampleFiles, name: str, described: str) -> Iterator[str]:
        """Yield paths: first a file with the suffix that the texts name, or the folder if the argument is a folder."""
        words = name_words(name).split()
        before = [one for one, other in pairwise(words) if is_path(other) and not is_path(one)]
        named = [one.lower() for pair in _SUFFIX.findall(f"{described}\n{self._texts}") for one in pair if one]
        suffixes = [*named, *(one for one in before if re.fullmatch(r"\w{2,5}", one)), "txt"]
        first = samples.folder if _FOLDER.search(name) else samples.file(suffixes[0])
        yield from dict.fromkeys([first, samples.folder, *map(samples.file, suffixes[:_RANKS])])


def _relevance(name: str, text: str) -> int:
    """Return the number of an argument's words that a text contains."""
    return sum(word in text.lower() for word in name_words(name).split())


def _dates(text: str) -> Iterator[str]:
    """Yield values of the date formats that a text names, such as "YYYY-MM-DD" or "ISO 8601"."""
    for found in _DATE.findall(text):
        yield _DATE_PART.sub(lambda part: _DATE_PARTS[part[0].upper()], found)
    yield from ("2024-01-31T12:00:00Z",) if _TIMESTAMP.search(text) else ()


def _listed(text: str) -> Iterator[str]:
    """Yield the items of lists in a text, such as "use one of: a, b", or of lines with bullets."""
    yield from _BULLET.findall(text)
    for found in _LISTED.findall(text):
        items = [item.strip(" \t\"'`.") for item in _BETWEEN.split(found)]
        if len(items) > 1 and all(len(item.split()) <= _MAX_WORDS for item in items):
            yield from filter(None, items)


def _only_text(value: Any) -> str | None:
    """Return a text, or the only text of an array; None for other values."""
    only = value[0] if isinstance(value, list) and len(value) == 1 else value
    return only if isinstance(only, str) else None
