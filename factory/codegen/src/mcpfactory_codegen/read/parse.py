"""Parser of the bytes of an API document (JSON or YAML) to plain JSON data.

YAML follows the core schema of YAML 1.2, but has only the types of JSON. `yes`, `no`, `on`, `off`, dates and `.inf` are
read as strings. A key is always a string, such as "200" for the status code 200. The tree is built from parser events
without recursion, so that depth, size and aliases can be limited early.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import yaml

from mcpfactory_codegen.ir import ProblemCollector
from mcpfactory_codegen.sources import text_document_key
from mcpfactory_codegen.sources.translation_helpers import parse_finite_number
from mcpfactory_runtime.schemas.walk import escape

MAX_DEPTH: Final = 200
"""Maximum depth of nested containers, because later steps recurse and real documents have fewer than 60 levels."""
MAX_NODES: Final = 8_000_000
"""Maximum values in one file, counting each use of an alias. The largest known document has 1.2 million values."""

Format = Literal["json", "yaml", "graphql"]
_WINDOWS: Final = "cp1252"
_COMMENT: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(\s*[}\]])')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class ParseError(ValueError):
    """Error for bytes that are not acceptable JSON or YAML, with the reason and the location."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class TextSyntaxError(ParseError):
    """Error for text that is neither JSON nor YAML."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "check the syntax there")


def parse(raw: bytes, problems: ProblemCollector, file: str = "") -> tuple[Any, Format]:
    """Return the data of a document and its format. `file` is a prefix for the pointers in problems.

    Raise a ParseError for bytes that are not text, not JSON or YAML, too deep, too large, or cyclic because of an
    alias.
    """
    text, encoding = decode_text(raw)
    if encoding == _WINDOWS:
        problems.add("document-encoding", file, "it is not UTF-8; read as Windows-1252", "save it as UTF-8")
    if not text.strip():
        raise ParseError("the file is empty", "check that the path is right and that the file was saved")
    if member := text_document_key(raw):
        return {member: text}, "graphql"
    if text.lstrip()[0] not in "{[":
        return _Yaml(text, problems, file).build(), "yaml"
    try:
        return _parse_json(text, raw, problems, file), "json"
    except json.JSONDecodeError as error:
        cleaned = strip_json_comments(text)
        try:
            data = _parse_json(cleaned, raw, problems, file)
        except json.JSONDecodeError:
            pass
        else:
            message = f"comments and trailing commas are not JSON (line {error.lineno}); read without them"
            problems.add("document-syntax", file, message, "remove them, or write YAML")
            return data, "json"
        try:  # text in the YAML flow style may contain tabs, which YAML forbids for indentation
            return _Yaml(text.replace("\t", " "), problems, file).build(), "yaml"
        except ParseError:
            message = f"the text is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
            raise TextSyntaxError(message) from None


def decode_text(raw: bytes) -> tuple[str, str]:
    """Return the text without byte-order mark, and its encoding (UTF-8, UTF-16, UTF-32 or Windows-1252).

    Raise a ParseError for bytes that are not text.
    """
    encoding = json.detect_encoding(raw)
    try:
        return raw.decode(encoding).removeprefix("\ufeff"), encoding
    except UnicodeDecodeError as error:
        if encoding.startswith("utf-8") and b"\0" not in raw:
            with suppress(UnicodeDecodeError):
                return raw.decode(_WINDOWS), _WINDOWS
        raise ParseError(
            f"the file is not text: {error.reason} at byte {error.start}", "save the file as UTF-8"
        ) from None


def strip_json_comments(text: str) -> str:
    """Remove comments and trailing commas from JSON, but keep line numbers."""
    plain = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"[^\n]", " ", match[0]), text)
    return _TRAILING.sub(lambda match: match[0] if match[0][0] == '"' else match[1], plain)


def _parse_json(text: str, raw: bytes, problems: ProblemCollector, file: str) -> Any:
    repeated: list[tuple[dict[str, Any], set[str]]] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            repeated.append((result, {key for key, _ in pairs if key in seen or seen.add(key)}))  # type: ignore[func-returns-value] # the usual way to find repeated keys
        return result

    try:
        data = json.loads(text, object_pairs_hook=mapping, parse_constant=str, parse_float=parse_finite_number)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # Python also raises ValueError for integers with too many digits
        if isinstance(error, json.JSONDecodeError):
            raise
        raise ParseError(f"the text is not valid JSON: {error}", "check the syntax") from None
    _check_bounds(data)
    if repeated:
        _report_repeated(data, repeated, problems, file)
    if _SURROGATE_ESCAPE.search(raw):
        data = _without_surrogates(data, problems, file)
    return data


def _too_deep() -> ParseError:
    message = f"it is nested deeper than {MAX_DEPTH} levels"
    return ParseError(message, "check how it was generated; no API needs that depth")


def _too_big() -> ParseError:
    message = f"it has more than {MAX_NODES:,} values (each use of a YAML alias counts)"
    return ParseError(message, "split the document, or expand fewer aliases")


def _check_bounds(data: Any) -> None:
    """Check depth and size level by level, without recursion."""
    level: list[Any] = [data]
    count = 0
    for _ in range(MAX_DEPTH + 1):
        deeper: list[Any] = []
        for node in level:
            if type(node) is dict:
                deeper.extend(node.values())
            elif type(node) is list:
                deeper.extend(node)
        count += len(deeper)
        if count > MAX_NODES:
            raise _too_big()
        if not deeper:
            return
        level = deeper
    raise _too_deep()


def _report_repeated(
    data: Any, repeated: list[tuple[dict[str, Any], set[str]]], problems: ProblemCollector, file: str
) -> None:
    keys = {id(node): names for node, names in repeated}
    stack: list[tuple[Any, str]] = [(data, "")]
    while stack:
        node, pointer = stack.pop()
        if isinstance(node, dict):
            for key in sorted(keys.get(id(node), ())):
                _duplicate(problems, f"{file}{pointer}/{escape(key)}", key)
            stack.extend((value, f"{pointer}/{escape(key)}") for key, value in node.items())
        elif isinstance(node, list):
            stack.extend((value, f"{pointer}/{index}") for index, value in enumerate(node))


def _duplicate(problems: ProblemCollector, pointer: str, key: str) -> None:
    problems.add("document-duplicate-key", pointer, f"the key {key!r} appears twice here; the last one is used")


def _without_surrogates(data: Any, problems: ProblemCollector, file: str) -> Any:
    """Replace lone surrogates, which JSON permits in escaped form but UTF-8 cannot encode."""

    def clean(node: Any, pointer: str) -> Any:
        if isinstance(node, str) and _SURROGATE.search(node):
            message = "the text contains a lone surrogate (half a character), which was replaced"
            problems.add("document-text", file + pointer, message)
            return _SURROGATE.sub("\ufffd", node)
        if isinstance(node, dict):
            return {clean(key, pointer): clean(value, f"{pointer}/{escape(key)}") for key, value in node.items()}
        if isinstance(node, list):
            return [clean(value, f"{pointer}/{index}") for index, value in enumerate(node)]
        return node

    return clean(data, "")


@dataclass(slots=True)
class _Frame:
    node: dict[str, Any] | list[Any]
    anchor: str | None
    key: str | None = None
    merges: list[Any] = field(default_factory=list)
    size: int = 1


_OPEN: Final = object()  # placeholder for an anchor whose container is still being read


class _Yaml:
    def __init__(self, text: str, problems: ProblemCollector, file: str) -> None:
        self._text = text
        self._problems = problems
        self._file = file
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int, str]] = {}
        self._count = 0
        self._root: Any = None

    def build(self) -> Any:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(self._text)
        documents = 0
        try:
            while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
                documents += isinstance(event, yaml.DocumentStartEvent)
                if documents > 1:
                    message = "the file contains several YAML documents; only the first one is read"
                    self._problems.add("document-multiple", self._file, message)
                    break
                if isinstance(event, yaml.ScalarEvent):
                    self._scalar(event)
                elif isinstance(event, yaml.AliasEvent):
                    self._alias(event)
                elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                    self._open(event)
                elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                    self._close(event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
            message = f"the text is not YAML: {error.problem or error.context}{where}"
            raise TextSyntaxError(message) from None
        except yaml.YAMLError as error:
            raise TextSyntaxError(f"the text is not YAML: {error}") from None
        except RecursionError:
            raise _too_deep() from None
        finally:
            loader.dispose()
        return self._root

    def _open(self, event: Any) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise _too_deep()
        mapping = isinstance(event, yaml.MappingStartEvent)
        top = self._stack[-1] if self._stack else None
        if top is not None and type(top.node) is dict and top.key is None:
            line = event.start_mark.line + 1
            raise ParseError(f"a mapping or list is used as a key (line {line})", "use only strings as keys")
        if event.anchor:
            self._anchors[event.anchor] = (_OPEN, 0, "")
        self._tagged(event)
        self._stack.append(_Frame({} if mapping else [], event.anchor))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        node = frame.node
        # a mapping's keys win over merged keys, and earlier merged mappings win over later merged mappings
        for merged in frame.merges:
            if type(node) is dict:
                node = {**merged, **node}
        if frame.anchor:
            self._anchors[frame.anchor] = (node, frame.size, "")
        self._add(node, frame.size, "", event)

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        top = self._stack[-1] if self._stack else None
        is_key = top is not None and type(top.node) is dict and top.key is None
        value = text if is_key or not (event.implicit[0] or event.tag) else self._resolve(event, text)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1, text)
        self._add("<<" if is_key and text == "<<" and event.implicit[0] else value, 1, text, event)

    def _alias(self, event: Any) -> None:
        value, size, text = self._anchors.get(event.anchor, (None, -1, ""))
        if size < 0:
            message = f"the alias *{event.anchor} refers to an unknown anchor (line {event.start_mark.line + 1})"
            raise ParseError(message)
        if value is _OPEN:
            raise ParseError(f"the alias *{event.anchor} contains itself (line {event.start_mark.line + 1})")
        self._add(value, size, text, event)

    def _add(self, value: Any, size: int, text: str, event: Any) -> None:
        self._count += size if isinstance(event, yaml.AliasEvent) else 1
        if self._count > MAX_NODES:
            raise _too_big()
        if not self._stack:
            self._root = value
            return
        top = self._stack[-1]
        top.size += size
        if type(top.node) is list:
            top.node.append(value)
            return
        assert type(top.node) is dict
        if top.key is None:
            top.key = text if isinstance(event, yaml.AliasEvent) else value
            return
        key, top.key = top.key, None
        sources = value if isinstance(value, list) else [value]
        if key == "<<" and all(isinstance(source, dict) for source in sources):
            top.merges.extend(sources)
            return
        if key in top.node:
            _duplicate(self._problems, f"{self._file}{self._pointer()}/{escape(key)}", key)
        top.node[key] = value

    def _pointer(self) -> str:
        tokens = [
            escape(frame.key or "") if type(frame.node) is dict else str(len(frame.node)) for frame in self._stack[:-1]
        ]
        return "".join(f"/{token}" for token in tokens)

    def _tagged(self, event: Any) -> None:
        if event.tag and event.tag not in _KNOWN_TAGS:
            tag, line = event.tag[:80], event.start_mark.line + 1
            message = f"the tag {tag!r} (line {line}) is ignored; the value is kept unchanged"
            self._problems.add("document-tag", self._file + self._pointer(), message)

    def _resolve(self, event: Any, text: str) -> Any:
        tag: str | None = event.tag
        if not tag:
            return parse_plain_scalar(text)
        self._tagged(event)
        return parse_plain_scalar(text) if isinstance(parse_plain_scalar(text), _TAGGED.get(tag, ())) else text


_KNOWN_TAGS: Final = frozenset(
    {"!", *(f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null", "str", "seq", "map"))}
)
_TAGGED: Final[dict[str, tuple[type, ...]]] = {
    "tag:yaml.org,2002:int": (int,),
    "tag:yaml.org,2002:float": (int, float),
    "tag:yaml.org,2002:bool": (bool,),
    "tag:yaml.org,2002:null": (type(None),),
}


# --- plain scalars of YAML as JSON values; numbers keep their source text if it differs ---


_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,4000}\Z|0o[0-7]{1,4000}\Z|0x[0-9a-fA-F]{1,4000}\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_WORDS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class TextPreservingInt(int):
    """An integer that keeps its source text, because "01234" and "1234" differ if the schema expects a string."""

    text: str

    def __str__(self) -> str:
        return self.text


class TextPreservingFloat(float):
    """A float that keeps its source text, because "1.10" and "1.1" differ if the schema expects a string."""

    text: str

    def __str__(self) -> str:
        return self.text


def _number(text: str) -> int | float | str:
    """Return the number with its source text, or only the text of a non-finite number."""
    if _INTEGER.match(text):
        whole = int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
        if str(whole) == text:
            return whole
        written: TextPreservingInt | TextPreservingFloat = TextPreservingInt(whole)
    else:
        number = parse_finite_number(text)
        if isinstance(number, str) or repr(number) == text:
            return number
        written = TextPreservingFloat(number)
    written.text = text
    return written


def parse_plain_scalar(text: str) -> Any:
    """Return a plain scalar's value, by the core schema of YAML 1.2 (§10.3.2), with .inf and .nan as strings."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    return _number(text) if _INTEGER.match(text) or _FLOAT.match(text) else text
