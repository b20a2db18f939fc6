"""Name words of an operation, from its operationId, its path and its summary.

An operationId is used only if a person chose it. Instead of an operationId that a program made, path, method and
summary provide a verb and nouns, such as “get book” for `GET /books/{id}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mcpfactory_codegen.effects import ACTION_VERBS, GENERIC_VERBS, VERBS, verb_infinitive
from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.text import (
    PATH_PREFIXES,
    VERSION,
    is_plural,
    singular,
    with_whole_words,
    word_group,
    word_pairs,
    words,
)

# maximum characters of a name's verb and nouns, unless a unique name must be longer
_ROOM: Final = 48
_NEAREST: Final = 2  # number of last path segments that are always part of the name
_PARAMETER: Final = re.compile(r"\{([^{}]*)\}|(?<=/):(\w+)")
_KEYS: Final = re.compile(r"\([^()/]*\{[^()/]*\)(?=/|\Z)")  # OData keys, such as `Books(ID={ID})`
_EXTENSION: Final = re.compile(r"(?<=[\w}])\.(json|xml|csv|txt|html|htm|yaml|yml|php|aspx|do)\Z", re.I)

_ON_ITEM: Final = {"GET": "get", "PUT": "update", "PATCH": "update", "DELETE": "delete", "POST": "update"}
_ON_COLLECTION: Final = {"GET": "list", "PUT": "set", "PATCH": "update", "DELETE": "delete", "POST": "create"}
_REST: Final = {"HEAD": "check", "OPTIONS": "options", "TRACE": "trace", "QUERY": "query"}


@dataclass(frozen=True, slots=True)
class PathWords:
    """Words of a path.

    `near` has the verb and the nouns of the last segments, without repetitions. `whole` has the verb and all nouns.
    `written` has the nouns in the spelling of the path. `rest` has all remaining words of the path: versions, prefixes,
    an extension, and the text after `#`.
    """

    verb: str
    near: tuple[str, ...]
    whole: tuple[str, ...]
    written: tuple[str, ...]
    parameters: tuple[str, ...]
    rest: tuple[str, ...]


def path_words(operation: ApiOperation, room: int = _ROOM) -> PathWords:
    """Return the words of an operation's path, with a verb that agrees with the summary.

    `room` is the maximum length of the verb and `near` together.
    """
    path, _, fragment = re.sub(r"[?#]", "\0", operation.path, count=1).partition("\0")
    extension = _EXTENSION.search(path)
    path = _EXTENSION.sub(
        "", _KEYS.sub(lambda keys: "".join(f"/{{{name}}}" for name, _ in _PARAMETER.findall(keys[0])), path)
    )
    segments, rest, on_item = _segments(path)
    parameters = [word for pair in _PARAMETER.findall(path) for word in words(pair[0] or pair[1])]
    rest += words(extension.group(1) if extension else "")
    if "=" in fragment or not segments:
        rest += words(fragment)
    elif words(fragment):
        # a fragment separates two operations of one path, such as `PUT /files/{id}#add_shared_link`
        segments.append(words(fragment))
        on_item = False
    verb, ordered = _phrase(operation, segments, on_item)
    near = ordered
    while len(near) > _NEAREST and len("_".join((verb, *_flat(near)))) > room:
        near = near[1:]
    return PathWords(
        verb,
        (verb, *_once(_flat(near))),
        (verb, *_flat(ordered)),
        _flat(segments),
        tuple(dict.fromkeys(parameters)),
        tuple(dict.fromkeys(rest)),
    )


def _flat(segments: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(word for segment in segments for word in segment)


def _once(nouns: tuple[str, ...]) -> tuple[str, ...]:
    """Remove consecutive repetitions: /marketing/marketing-events becomes “marketing events”."""
    pairs = zip(nouns, (*nouns[1:], ""), strict=False)
    return tuple(word for word, after in pairs if singular(word) != singular(after))


def _segments(path: str) -> tuple[list[tuple[str, ...]], list[str], bool]:
    segments = [segment for segment in path.split("/") if segment]
    literal: list[tuple[str, ...]] = []
    rest: list[str] = []
    for segment in segments:
        parts = words(_PARAMETER.sub(" ", f"/{segment}"))
        if VERSION.match(segment) or segment.lower() in PATH_PREFIXES:
            rest += parts
        elif parts:
            literal.append(parts)
    last = segments[-1] if segments else ""
    on_item = last.startswith(("{", ":")) and not words(_PARAMETER.sub(" ", f"/{last}"))
    return literal, rest, on_item


def _phrase(
    operation: ApiOperation, segments: list[tuple[str, ...]], on_item: bool
) -> tuple[str, list[tuple[str, ...]]]:
    method = operation.method
    said = summary_verbs(operation.summary, reading=method == "GET")
    if not segments:
        verb = _REST.get(method) or {**_ON_ITEM, "POST": "post"}.get(method, method.lower())
        return _agreed(verb, said, many=False), [("item",)] if on_item else [("root",)]
    last, before = segments[-1], [tuple(singular(word) for word in segment) for segment in segments[:-1]]
    if _is_action(last, operation, said, on_item=on_item) or (before and _is_change(last, method, on_item=on_item)):
        return last[0], [*before, last[1:]] if last[1:] else before
    if method in _REST:
        return _REST[method], [*before, last]
    if on_item:
        one = (*last[:-1], singular(last[-1]))
        verb = _agreed(_ON_ITEM.get(method, method.lower()), said, many=False)
        return verb, [*before, one if verb != "list" else last]
    many = is_plural(last[-1])
    verb = _ON_COLLECTION.get(method, method.lower())
    if method == "GET" and not many:
        verb = "get"
    verb = _agreed(verb, said, many=many)
    if method == "POST" and verb_kind(verb) != "read":
        last = (*last[:-1], singular(last[-1]))
    return verb, [*before, last]


def _is_action(last: tuple[str, ...], operation: ApiOperation, said: tuple[str, ...], *, on_item: bool) -> bool:
    """Return True if the last literal segment of the path is an action.

    If a parameter follows the segment, the summary must confirm the action.
    """
    method = operation.method
    if last[0] in said and last[0] in VERBS:
        return True
    if on_item or method not in {"POST", "PUT", "GET"}:
        return False
    if "#" in operation.path:
        return last[0] in VERBS
    return last[0] in (READING if method == "GET" else ACTION_VERBS)


def _is_change(last: tuple[str, ...], method: str, *, on_item: bool) -> bool:
    """Return True if the segment starts with a verb of change: `POST /books/update/{id}`, `POST /create-book`."""
    changes = verb_kind(last[0]) in {"create", "update", "delete"} and last[0] in _CERTAIN
    return changes and method != "GET" and (len(last) == 1 or not on_item)


def _agreed(verb: str, said: tuple[str, ...], *, many: bool) -> str:
    """Return the method's verb, or the summary's verb if the two verbs are of different kinds."""
    if not said or verb_kind(verb) in {verb_kind(one) for one in said}:
        return verb
    if verb == "set" and "create" in said:
        return verb  # keep the verb "set", because PUT both creates and replaces
    first = said[0]
    return "list" if first == "get" and many else first


_MACHINE_MADE: Final = re.compile(
    r"((operation|op|route|handler|endpoint|api|path|method|unnamed|id)[_-]?\d*|(\w*[_-])?(?=\w*\d)[0-9a-f]{8,}|\d+)\Z",
    re.I,
)
# a word of letters, with or without a version, such as `chatv2`
_TELLING: Final = re.compile(r"[^\W\d_]+|[a-z]{3,}v\d{1,2}")
_LOWERED: Final = re.compile(r"\A[a-z](?=[A-Z]{2})")  # `pUTBook`: Scribe puts the title “PUT Book” in camel case
_SPRING: Final = re.compile(r"(?P<name>.+?)_?Using_?(GET|PUT|POST|DELETE|PATCH|HEAD|OPTIONS)(_\d+)?\Z")
_NEST: Final = re.compile(r"(?P<group>\w+?)Controller[_.](?P<name>\w+)\Z")
_METHOD_FIRST: Final = re.compile(r"(GET|PUT|POST|DELETE|PATCH)_(?P<name>[A-Z]\w*)\Z")


@dataclass(frozen=True, slots=True)
class OperationIdWords:
    """Words of an operationId.

    `chosen` has the words that a person chose, or () if method and path are more meaningful. `tail` has the words of
    the operationId after method and path.
    """

    chosen: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()


def operation_id_words(operation: ApiOperation) -> OperationIdWords:
    """Return the meaningful words of the operationId."""
    text = with_whole_words(_LOWERED.sub(lambda match: match.group().upper(), operation.operation_id))
    whole = words(text)
    if not whole or _MACHINE_MADE.match("_".join(whole)) or not any(_TELLING.fullmatch(part) for part in whole):
        return OperationIdWords()
    nouns = words(re.sub(r"\{[^{}]*\}", " ", re.split(r"[?#]", operation.path, maxsplit=1)[0]))
    if nouns and (_is_bare(whole) or _repeats_path(operation, whole)):
        return OperationIdWords()
    begin = f"{operation.method.lower()}-{operation.path}"
    if text.startswith(f"{begin}_"):
        return OperationIdWords(tail=words(text[len(begin) :]))
    if re.search(rf"\W{re.escape(operation.path)}\Z", text):  # Goa names a file server `books#/books/openapi.json`
        return OperationIdWords()
    if (match := _METHOD_FIRST.match(text)) and match[1] == operation.method and words(match["name"])[0] in VERBS:
        # drop the method, because a name such as `get_delete_policy` would contain two verbs
        return OperationIdWords(words(match["name"]))
    for plain in _plain(operation, text):
        parts = words(plain)
        if parts and parts != whole:
            return OperationIdWords() if _is_bare(parts) else OperationIdWords(parts)
    return OperationIdWords(whole)


def _is_bare(parts: tuple[str, ...]) -> bool:
    return len(parts) == 1 and parts[0] in GENERIC_VERBS


def _plain(operation: ApiOperation, text: str) -> Iterator[str]:
    """Yield names that a person may have chosen, without words that frameworks add to operationIds."""
    tail = "_" + operation.method.lower()
    # FastAPI names the function `read_item` for example `read_item_items__item_id__get`
    made = re.sub(r"\W", "_", operation.path) + tail
    for ending in (made, re.sub(r"\W", "_", operation.path.rstrip("/")) + tail):
        name = text.removesuffix(ending)
        chosen = set(words(name))
        sure = "__" in ending or len(words(ending)) > 3 or chosen & VERBS or chosen <= {*words(operation.path)}
        if name != text and chosen and sure:
            yield name
    if match := _SPRING.match(text):
        yield match["name"]
    if match := _NEST.match(text):
        yield f"{match['group']}_{match['name']}"
    # an OData converter names the operation `ListProduct` for example `Products.Product.ListProduct`
    groups, _, name = text.rpartition(".")
    if groups and {*map(singular, words(groups))} <= {*map(singular, words(name))}:
        yield name


def _repeats_path(operation: ApiOperation, parts: tuple[str, ...]) -> bool:
    """Return True if `parts` only repeat the method and the path, including parameters."""
    method = operation.method.lower()
    sides = [(parts[0], parts[1:]), (parts[-1], parts[:-1])]
    path = re.split(r"[?#]", operation.path, maxsplit=1)[0]
    for verb, rest in sides:
        prefixed = any(VERSION.match(part) or part in PATH_PREFIXES for part in rest)  # people leave out `api_v1`
        if verb != method or (verb in {"get", "delete"} and "{" not in path and not prefixed):
            continue
        if rest and any(
            re.fullmatch(pattern, "_".join(rest) + "_") for pattern in (_spelled(path), _spelled(operation.path))
        ):
            return True
    return False


def _spelled(path: str) -> str:
    """Return a pattern of the spellings of a path, with optional versions and prefixes."""
    pieces = []  # `?+` is possessive, because backtracking over many parameters takes exponential time
    for segment in re.split(r"[/?#&=]", path):
        for piece in re.split(r"(\{[^{}]*\})", segment):
            spelled = "_".join(words(piece))
            if not spelled:
                continue
            optional = VERSION.match(piece) or piece.lower() in PATH_PREFIXES
            parameter = piece.startswith("{")
            pieces.append(
                f"(?:(?:{spelled}|id)_)?+" if parameter else f"(?:{spelled}_)?" if optional else f"{spelled}_"
            )
    return "".join(pieces)


READING: Final = frozenset({"search", "export", "download", "query", "preview", "validate", "verify", "compare"})
"""Actions that GET requests can perform."""


_KIND_OF: Final = {verb: name for name in ("read", "create", "update", "delete") for verb in word_group(f"{name}-kind")}
_CERTAIN: Final = word_group("certain-verbs")
_POINTERS: Final = word_group("pointers")
_NOUN_BEFORE: Final = word_group("nouns-before")
_ADVERBS: Final = frozenset({"bulk", "batch", "mass", "gracefully"})
_NORMAL: Final = word_pairs("normal-verbs")
_WRITTEN: Final = re.compile(r"^(\[[^\]]*\]|\([^)]*\)|[\W\d_])+")


def verb_kind(verb: str) -> str:
    """Return the kind of a verb: read, create, update, delete, or the verb itself."""
    return _KIND_OF.get(verb, verb)


def summary_verbs(summary: str, *, reading: bool) -> tuple[str, ...]:
    """Return the verbs at the start of a summary, such as ("create", "update") for "Creates or updates a book".

    Return () if the first word is not a verb or can be a noun, as in "Request details". `reading` also excludes verbs
    as in "Upload file" and "Request the time".
    """
    said = words(_WRITTEN.sub("", summary[:200]))
    while said and (said[0] in _ADVERBS or said[0].endswith("ly")) and len(said) > 1 and said[0] != "reply":
        said = said[1:]
    verb = _verb_of(said[0]) if said else ""
    if not verb:
        return ()
    if len(said) > 2 and said[1] in {"or", "and"} and (other := _verb_of(said[2])):
        return _NORMAL.get(verb, verb), _NORMAL.get(other, other)
    inflected = verb != said[0]
    if reading and verb == "request":
        return ()
    pointed = len(said) > 1 and said[1] in _POINTERS
    done = not reading and verb in ACTION_VERBS and len(said) > 1 and said[1] not in _NOUN_BEFORE
    if not (inflected or verb in _CERTAIN or pointed or done):
        return ()
    if verb == "list" and said[1:2] == ("of",):
        return ("list",)
    return (_NORMAL.get(verb, verb),)


def _verb_of(word: str) -> str:
    """Return the base form of a verb, or "" for other words."""
    verb = verb_infinitive(word, VERBS)
    return verb if verb in VERBS else ""
