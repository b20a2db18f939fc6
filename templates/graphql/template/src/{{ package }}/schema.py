"""The schema of the API: parses an introspection result, searches it, and shows single types."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["INTROSPECTION", "Found", "Schema", "SchemaError", "TypeText", "clean"]

_SHORT: Final = 2  # letters; words this short are ignored if there are longer ones
_WRAPPED: Final = 7  # nesting of lists and "!" around a type
_DESCRIBED: Final = 300  # characters of a description
_LINES: Final = 80  # lines of a type in one result
_UNSEEN: Final = {"Cf", "Cc", "Cs", "Co", "Cn"}  # Unicode categories of invisible characters
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def _introspection() -> str:
    inner = "kind name"
    for _ in range(_WRAPPED):
        inner = f"kind name ofType {{ {inner} }}"
    value = f"name description type {{ {inner} }} defaultValue"
    return f"""query Introspection {{ __schema {{
      queryType {{ name }} mutationType {{ name }}
      types {{
        kind name description
        fields(includeDeprecated: true) {{ name description args {{ {value} }} type {{ {inner} }} isDeprecated deprecationReason }}
        inputFields {{ {value} }} interfaces {{ name }} possibleTypes {{ name }}
        enumValues(includeDeprecated: true) {{ name description isDeprecated deprecationReason }}
      }}
    }} }}"""


INTROSPECTION: Final = _introspection()
"""Introspection query, limited to what every server supports."""


class SchemaError(ValueError):
    """Raised for an invalid schema or an unknown type; the message is for a model."""


@dataclass(frozen=True, slots=True)
class Found:
    """A part of the schema: a field as `Type.field(argument: Type): Type`, or a type."""

    where: str
    about: str


@dataclass(frozen=True, slots=True)
class TypeText:
    """A type in schema notation. `next_offset` is the offset of the next part; null at the end."""

    name: str
    text: str
    lines: int
    next_offset: int | None


class Schema:
    """The types of an API.

    Args:
        data: an introspection result, with or without its key `__schema`.

    Raises:
        SchemaError: `data` is not an introspection result.
    """

    def __init__(self, data: Any) -> None:
        try:
            schema = data.get("__schema", data)
            self.types: dict[str, dict[str, Any]] = {one["name"]: one for one in schema["types"]}
            self.query: str = schema["queryType"]["name"]
            self.mutation: str = (schema.get("mutationType") or {}).get("name", "")
            self._parts = list(self._all())
        except (AttributeError, KeyError, TypeError):
            raise SchemaError("The introspection result is not a schema.") from None

    def search(self, words: str, limit: int) -> tuple[list[Found], bool]:
        """Return the parts that match best, and True if there are more. Of equal matches, queries and mutations come first."""
        wanted = _split(words)
        scored = [
            (score, -at, found) for at, (known, found) in enumerate(self._parts) if (score := _fits(wanted, known, found))
        ]
        scored.sort(key=lambda one: one[:2], reverse=True)
        return [found for _, _, found in scored[:limit]], len(scored) > limit

    def show(self, name: str, offset: int = 0) -> TypeText:
        """Return a type in schema notation, from a line offset.

        Raises:
            SchemaError: no type has this name.
        """
        if (one := self.types.get(name)) is None:
            near = sorted(known for known in self.types if name.lower() in known.lower())[:10]
            raise SchemaError(f"There is no type {name[:100]}. hint: {', '.join(near) or 'search_schema finds types'}")
        lines = list(_body(one))
        end = offset + _LINES
        head = f"# {clean(one.get('description'))}\n" if one.get("description") else ""
        text = f"{head}{_head(one)}"
        if lines:
            text += " {\n" + "\n".join(lines[offset:end]) + "\n}"
        return TypeText(name, text, len(lines), end if end < len(lines) else None)

    def _all(self) -> Iterator[tuple[frozenset[str], Found]]:
        """Yield each part with the words of its name; fields of queries and mutations first."""
        first = [self.types[name] for name in (self.query, self.mutation) if name in self.types]
        rest = [one for one in self.types.values() if one not in first and not one["name"].startswith("__")]
        for one in (*first, *rest):
            if one not in first:
                yield _known(one["name"]), Found(_head(one), clean(one.get("description")))
            for field in one.get("fields") or one.get("inputFields") or ():
                line = f"{one['name']}.{_signature(field)}"
                yield _known(one["name"], field["name"]), Found(line, clean(field.get("description")))
            for value in one.get("enumValues") or ():
                yield _known(one["name"], value["name"]), Found(f"{one['name']}.{value['name']}", clean(value.get("description")))


def clean(text: str | None, most: int = _DESCRIBED) -> str:
    """Return a text on one line, without invisible characters, cut after `most` characters."""
    kept = "".join(one if unicodedata.category(one) not in _UNSEEN else " " * (one in "\t\r\n") for one in text or "")
    joined = " ".join(kept.split())
    return joined if len(joined) <= most else f"{joined[:most]}…"


def _split(text: str) -> list[str]:
    words = [word.lower() for word in _WORDS.findall(text)]
    return [word for word in words if len(word) > _SHORT] or words


def _known(*names: str) -> frozenset[str]:
    return frozenset(word for name in names for word in _split(name))


def _fits(wanted: list[str], known: frozenset[str], found: Found) -> int:
    """Return a score of a match: words in the name count more than words in the description."""
    about = found.about.lower()
    score = 0
    for word in wanted:
        stem = word.removesuffix("s")
        if any(one.startswith(stem) for one in known):
            score += 4 if word in known or stem in known else 3
        elif stem in about:
            score += 1
    return score


def _type(ref: dict[str, Any]) -> str:
    inner = ref.get("ofType")
    if ref["kind"] == "NON_NULL":
        return f"{_type(inner or {'kind': '', 'name': '?'})}!"
    if ref["kind"] == "LIST":
        return f"[{_type(inner or {'kind': '', 'name': '?'})}]"
    return str(ref["name"])


def _signature(field: dict[str, Any]) -> str:
    given = ", ".join(_argument(one) for one in field.get("args") or ())
    return f"{field['name']}{f'({given})' if given else ''}: {_type(field['type'])}{_default(field)}"


def _argument(one: dict[str, Any]) -> str:
    return f"{one['name']}: {_type(one['type'])}{_default(one)}"


def _default(one: dict[str, Any]) -> str:
    return f" = {clean(one['defaultValue'], 60)}" if one.get("defaultValue") is not None else ""


_HEADS: Final = {
    "OBJECT": "type", "INTERFACE": "interface", "INPUT_OBJECT": "input", "ENUM": "enum", "SCALAR": "scalar", "UNION": "union",
}  # fmt: skip


def _head(one: dict[str, Any]) -> str:
    word, name = _HEADS.get(one["kind"], "type"), one["name"]
    if one["kind"] == "UNION":
        return f"union {name} = {' | '.join(kind['name'] for kind in one.get('possibleTypes') or ())}"
    above = " & ".join(kind["name"] for kind in one.get("interfaces") or ())
    return f"{word} {name} implements {above}" if above else f"{word} {name}"


def _body(one: dict[str, Any]) -> Iterator[str]:
    for field in one.get("fields") or one.get("inputFields") or ():
        yield f"  {_signature(field)}{_remark(field)}"
    for value in one.get("enumValues") or ():
        yield f"  {value['name']}{_remark(value)}"


def _remark(part: dict[str, Any]) -> str:
    about = clean(part.get("description"))
    if part.get("isDeprecated"):
        about = f"deprecated: {clean(part.get('deprecationReason')) or about}"
    return f"  # {about}" if about else ""
