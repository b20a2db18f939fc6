"""What an operationId says, without what frameworks add to the name that a person chose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming.paths import PATH_PREFIXES
from mcpfactory_codegen.naming.verbs import BARE, VERBS
from mcpfactory_codegen.text import VERSION, words

__all__ = ["IdWords", "id_words"]


_MACHINE_MADE: Final = re.compile(
    r"((operation|op|route|handler|endpoint|api|path|method|unnamed|id)[_-]?\d*|(\w*[_-])?(?=\w*\d)[0-9a-f]{8,}|\d+)\Z",
    re.I,
)
_GENERIC: Final = frozenset(
    {"operation", "op", "route", "handler", "endpoint", "api", "path", "method", "unnamed", "id"}
)
_ONE_WORD: Final = re.compile(r"OAuth|iOS|macOS|GraphQL|IdP")
_MANY: Final = re.compile(r"[A-Z]{2,}s(?![a-z])")
_SPRING: Final = re.compile(r"(?P<name>.+?)_?Using_?(GET|PUT|POST|DELETE|PATCH|HEAD|OPTIONS)(_\d+)?\Z")
_NEST: Final = re.compile(r"(?P<group>\w+?)Controller[_.](?P<name>\w+)\Z")
_METHOD_FIRST: Final = re.compile(r"(GET|PUT|POST|DELETE|PATCH)_(?P<name>[A-Z]\w*)\Z")


@dataclass(frozen=True, slots=True)
class IdWords:
    """`plain`: what a person chose; `whole`: with all that a framework added. Both are () when method and path say more.

    `tail`: the words of a name that follows method and path in the operationId.
    """

    plain: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()


def id_words(operation: ApiOperation) -> IdWords:
    """Return the words of the operationId, as far as it says something."""
    text = _whole_words(operation.operation_id)
    whole = words(text)
    if not whole or _MACHINE_MADE.match("_".join(whole)) or not any(part.isalpha() for part in whole):
        return IdWords()
    if _nouns(operation.path) and (_is_bare(whole) or _repeats_path(operation, whole)):
        return IdWords()
    begin = f"{operation.method.lower()}-{operation.path}"
    if text.startswith(f"{begin}_"):
        return IdWords(tail=words(text[len(begin) :]))
    if (match := _METHOD_FIRST.match(text)) and match[1] == operation.method and words(match["name"])[0] in VERBS:
        return IdWords(words(match["name"]), words(match["name"]))  # `get_delete_policy` would say two things
    for plain in _plain(operation, text):
        parts = words(plain)
        if parts and parts != whole:
            return IdWords() if _is_bare(parts) else IdWords(parts, whole)
    return IdWords(whole, whole)


def _whole_words(text: str) -> str:
    """Return the text with names and plurals of abbreviations in one piece: `OAuth2` is oauth2, and `IDs` ids."""
    text = _ONE_WORD.sub(lambda match: match.group().capitalize(), text)
    return _MANY.sub(lambda match: match.group().capitalize(), text)


def _nouns(path: str) -> bool:
    """Whether a path says something beside its parameters."""
    return bool(words(re.sub(r"\{[^{}]*\}", " ", re.split(r"[?#]", path, maxsplit=1)[0])))


def _is_bare(parts: tuple[str, ...]) -> bool:
    """Whether the name is a verb without a noun."""
    return len(parts) == 1 and parts[0] in BARE


def _plain(operation: ApiOperation, text: str) -> Iterator[str]:
    """Proposals for the name that a person chose, by the frameworks that make an operationId of it."""
    tail = "_" + operation.method.lower()
    made = (
        re.sub(r"\W", "_", operation.path) + tail
    )  # FastAPI: `read_item_items__item_id__get` is the function read_item
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


def _repeats_path(operation: ApiOperation, parts: tuple[str, ...]) -> bool:
    """Whether `parts` are the method and the path's words, parameters and all, so that the path says it better.

    `getUserBooks` on /user/books stays: somebody chose it.
    """
    method = operation.method.lower()
    sides = [(parts[0], parts[1:]), (parts[-1], parts[:-1])]
    path = re.split(r"[?#]", operation.path, maxsplit=1)[0]
    for verb, rest in sides:
        if verb != method or (verb in {"get", "delete"} and "{" not in path):
            continue
        if rest and any(
            re.fullmatch(pattern, "_".join(rest) + "_") for pattern in (_spelled(path), _spelled(operation.path))
        ):
            return True
    return False


def _spelled(path: str) -> str:
    """Return a pattern of the spellings of a path: with or without versions and prefixes, and parameters by name or as `id`."""
    pieces = []
    for segment in re.split(r"[/?#&=]", path):
        for piece in re.split(r"(\{[^{}]*\})", segment):
            spelled = "_".join(words(piece))
            if not spelled:
                continue
            optional = VERSION.match(piece) or piece.lower() in PATH_PREFIXES
            parameter = piece.startswith("{")
            pieces.append(f"(?:{spelled}|id)_" if parameter else f"(?:{spelled}_)?" if optional else f"{spelled}_")
    return "".join(pieces)
