"""What a server is handed that nobody else may know, or what stands in for it, and a mark in its place in whatever the server says. Pure.

A value with a secret, real or random, is masked before what a server said is compared, reported or written: the mark is the same for both,
so that a lock that was made with real values agrees with one that was made without.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote

from mcpfactory_pipeline.audit.inventory import ConfiguredServer
from mcpfactory_pipeline.audit.mentions import is_credential_name, is_reference, is_telling

__all__ = ["MARK", "Handed", "closed_headers", "hand"]

MARK: Final = "…"
_REFERENCE: Final = re.compile(
    r"\$\{(?:env:)?([A-Za-z_]\w*)(?::?-[^}]*)?\}|\{env:([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)|%([A-Za-z_]\w*)%"
)
_INSIDE: Final = 6  # characters of a value that is looked for inside of words, too, and that no text has by chance
_SHORTEST: Final = 4  # characters of a value that is masked; `1` stands in many texts
_RUN: Final = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Handed:
    """What one server must not tell: `values` under the names that they have in its configuration; `stand_ins` are given in their place.

    `stand_ins` is empty where the server gets the values themselves. `environ` is what references are taken from. `kept_back`: the
    server did not get all that its client hands it.
    """

    values: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    stand_ins: Mapping[str, str] = field(default_factory=dict, repr=False)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    kept_back: bool = False

    def word(self, text: str) -> str:
        """Return a text of the configuration as the server gets it."""
        known = [(name, value) for name, value in self.values if name in self.stand_ins]
        given: str = _without(known, text, lambda name: self.stand_ins[name])[0]
        return given

    def variable(self, name: str, value: str) -> str:
        """Return the value of a variable as the server gets it, with what it refers to."""
        return self.stand_ins.get(name) or self.resolved(self.word(value))

    def resolved(self, value: str) -> str:
        """Return a value with what it refers to; what is not there is empty."""
        known = {**self.environ, **self.stand_ins}
        return _REFERENCE.sub(lambda found: known.get(_referred(found), ""), value)

    def masked(self, said: Any) -> tuple[Any, tuple[str, ...]]:
        """Return data or a text that a server said with a mark for each value, and the names of those that certainly were in it."""
        values = [*self.stand_ins.items(), *(one for one in self.values if len(one[1]) >= _SHORTEST)]
        kept, found = _without(values, said, lambda _name: MARK)
        return kept, tuple(sorted({name for name, value in found if len(value) >= _INSIDE}))

    def masked_text(self, text: str) -> str:
        """Return a text that may have been cut, with a mark also for the beginning of a value at its end."""
        text = str(self.masked(text)[0])
        for value in (*self.stand_ins.values(), *(value for _, value in self.values)):
            for length in range(min(len(value), len(text)), _INSIDE - 1, -1):
                if text.endswith(value[:length]):
                    return f"{text[:-length]}{MARK}"
        return text


def hand(server: ConfiguredServer, environ: Mapping[str, str], *, with_secrets: bool) -> Handed:
    """Return what a server is handed: its own values, or a random one for each that no server can know."""
    own = {one.name for one in server.secrets if one.place in {"environment", "arguments"}}
    referred = list(_references(server))
    named = {*own, *server.passed, *(one for _, one in referred if is_credential_name(one))}
    stand_ins = {} if with_secrets else {name: f"canary-{secrets.token_hex(12)}" for name in sorted(named)}
    values = [(one.name, one.value) for one in server.secrets]
    values += [(name, value) for name, value in server.environ.items() if name in own and not is_reference(value)]
    values += [
        (name, environ[one])
        for name, one in referred
        if one in environ and (is_credential_name(name) or is_telling(one, environ[one]))
    ]
    plain = [(name, unquote(value)) for name, value in values if "%" in value]
    kept_back = not with_secrets and bool(closed_headers(server) if server.address else stand_ins)
    return Handed(tuple(dict.fromkeys((*values, *plain))), stand_ins, environ, kept_back)


def closed_headers(server: ConfiguredServer) -> set[str]:
    """Return the names of the headers that hold a secret, or refer to one."""
    referring = {name for name, value in server.headers.items() if _REFERENCE.search(value) or is_reference(value)}
    return referring | {one.name for one in server.secrets if one.place == "headers"}


def _references(server: ConfiguredServer) -> Iterator[tuple[str, str]]:
    """Yield the name of each variable or header with a reference, and the variable that it refers to."""
    yield from ((name, name) for name in server.passed if name not in server.environ)
    for name, value in (*server.environ.items(), *server.headers.items()):
        yield from ((name, _referred(found)) for found in _REFERENCE.finditer(value))


def _referred(found: re.Match[str]) -> str:
    return next(name for name in found.groups() if name)


def _without(
    values: Sequence[tuple[str, str]], data: Any, put: Callable[[str], str]
) -> tuple[Any, set[tuple[str, str]]]:
    """Return data with what `put` gives for the name of each value that is in its texts, and the pairs that were."""
    texts = "\n".join(_texts(data))
    there = [one for one in values if one[1] and max(_RUN.findall(one[1]), key=len, default="") in texts]
    if not there:
        return data, set()
    there.sort(key=lambda one: len(one[1]), reverse=True)  # the longest first
    pattern = re.compile("|".join(f"({_pattern(value)})" for _, value in there))
    found: set[tuple[str, str]] = set()

    def replaced(match: re.Match[str]) -> str:
        one = there[(match.lastindex or 1) - 1]
        found.add(one)
        return put(one[0])

    return _mapped(data, lambda text: pattern.sub(replaced, text)), found


def _pattern(value: str) -> str:
    """Return the pattern of a value as it may be written: itself, percent-encoded, or escaped in JSON; a short one as a whole word."""
    whole = "".join(one if one.isascii() and one.isalnum() else _spellings(one) for one in value)
    return whole if len(value) >= _INSIDE else rf"(?<!\w){whole}(?!\w)"


def _spellings(one: str) -> str:
    """Return the pattern of a character that is written in several ways; JSON in a text of JSON has more than one backslash."""
    escaped = json.dumps(one)[1:-1].lstrip("\\")
    forms = [rf"\\{{0,4}}{re.escape(one)}", rf"\\{{1,4}}{re.escape(escaped)}"]
    forms.append(f"(?i:{re.escape(quote(one, safe='', errors='replace'))})")
    if one.isspace():
        forms.append(r"[\s+]")
    return f"(?:{'|'.join(forms)})"


def _texts(data: Any) -> Iterator[str]:
    """Yield every text of data whole, names of members too."""
    todo = [data]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            todo += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            todo += item


def _mapped(data: Any, change: Callable[[str], str]) -> Any:
    if isinstance(data, str):
        return change(data)
    if isinstance(data, Mapping):
        return {change(name) if isinstance(name, str) else name: _mapped(one, change) for name, one in data.items()}
    if isinstance(data, list | tuple):
        return [_mapped(one, change) for one in data]
    return data
