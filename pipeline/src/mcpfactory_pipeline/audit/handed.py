"""What a server is handed that nobody else may know, or what stands in for it, and a mark in its place in whatever the server says. Pure.

A value with a secret, real or random, is masked before what a server said is compared, reported or written: the mark is the same for both,
so that a lock that was made with real values agrees with one that was made without. A value of fewer than four characters is not masked, as
it stands in many texts; one of fewer than six is masked as a whole word only.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

from mcpfactory_pipeline.audit.inventory import ConfiguredServer
from mcpfactory_pipeline.audit.mentions import (
    in_headers,
    in_variables,
    is_credential_name,
    is_plain,
    is_reference,
    is_token,
)
from mcpfactory_runtime.upstream.redaction import secret_forms

__all__ = ["MARK", "Handed", "SecretValue", "hand"]

MARK: Final = "…"
_REFERENCE: Final = re.compile(
    r"\$\{(?:env:)?([A-Za-z_]\w*)(?::?-[^}]*)?\}|\{env:([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)|%([A-Za-z_]\w*)%"
)
_INSIDE: Final = 6  # characters of a value that is looked for inside of words, too, and that no text has by chance
_SHORTEST: Final = 4  # characters of a value that is masked; `1` stands in many texts


@dataclass(frozen=True, slots=True)
class SecretValue:
    """What a server must not tell, under the name that it has in its configuration, and whether the server got it."""

    name: str
    text: str = field(repr=False)
    handed: bool


@dataclass(frozen=True, slots=True)
class Handed:
    """What one server is handed, and what it must not tell (`values`); `stand_ins` are given in the place of real values.

    `stand_ins` is empty where the server gets the values themselves, and so is `closed`, the names of the headers that are kept back.
    `environ` is what references are taken from. `kept_back`: the server did not get all that its client hands it.
    """

    values: tuple[SecretValue, ...] = ()
    stand_ins: Mapping[str, str] = field(default_factory=dict, repr=False)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    closed: frozenset[str] = frozenset()
    kept_back: bool = False

    def word(self, text: str) -> str:
        """Return a text of the configuration as the server gets it."""
        known = [one for one in self.values if one.name in self.stand_ins and one.text != self.stand_ins[one.name]]
        given: str = _replace_values(known, text, lambda name: self.stand_ins[name])[0]
        return given

    def variables(self, server: ConfiguredServer) -> dict[str, str]:
        """Return the variables of a server as it gets them, with what they refer to."""
        there = {**self.environ, **self.stand_ins}
        passed = {name: there[name] for name in server.passed if name in there}
        own = {
            name: self.stand_ins.get(name) or self.resolved(self.word(value)) for name, value in server.environ.items()
        }
        return {**passed, **own}

    def headers(self, server: ConfiguredServer) -> dict[str, str]:
        """Return the headers that its address is asked with."""
        return {name: self.resolved(value) for name, value in server.headers.items() if name not in self.closed}

    def resolved(self, value: str) -> str:
        """Return a value with what it refers to; what is not there is empty."""
        known = {**self.environ, **self.stand_ins}
        return _REFERENCE.sub(lambda found: known.get(_referred(found), ""), value)

    def masked(self, said: Any) -> tuple[Any, tuple[str, ...]]:
        """Return data or a text that a server said with a mark for each value, and the names of those that it got and certainly told."""
        kept, found = _replace_values(
            [one for one in self.values if len(one.text) >= _SHORTEST], said, lambda _name: MARK
        )
        return kept, tuple(sorted({one.name for one in found if one.handed and len(one.text) >= _INSIDE}))

    def masked_text(self, text: str) -> str:
        """Return a text that may have been cut, with a mark also for the beginning of a value at its end."""
        text = str(self.masked(text)[0])
        for value in (one.text for one in self.values):
            for length in range(min(len(value), len(text)), _INSIDE - 1, -1):
                if text.endswith(value[:length]):
                    return f"{text[:-length]}{MARK}"
        return text


def hand(server: ConfiguredServer, environ: Mapping[str, str], *, with_secrets: bool) -> Handed:
    """Return what a server is handed: its own values, or a random one for each that no server can know."""
    own = {one.name for one in server.secrets if one.place in {"environment", "arguments"}}
    inside = _resolved_secrets(server, environ)
    referred = list(_references(server))
    named = {*own, *server.passed}
    named |= {one for name, one in referred if _is_kept(name, one, environ.get(one), {text for _, text in inside})}
    stand_ins = {} if with_secrets else {name: f"canary-{secrets.token_hex(12)}" for name in sorted(named)}
    pairs = [(one.name, one.value) for one in server.secrets]
    pairs += [(name, value) for name, value in server.environ.items() if name in own and not is_reference(value)]
    pairs += [
        (name, environ[one])
        for name, one in referred
        if one in environ and (is_credential_name(name) or is_credential_name(one) or is_token(environ[one]))
    ]
    pairs += inside
    pairs += [(name, unquote(value)) for name, value in pairs if "%" in value]
    values = [SecretValue(name, text, handed=True) for name, text in dict.fromkeys((*stand_ins.items(), *pairs))]
    closed = frozenset() if with_secrets else _closed_headers(server)
    kept_back = bool(closed if server.address else stand_ins)
    return _note_handed(Handed(tuple(values), stand_ins, environ, closed, kept_back), server)


def _note_handed(handed: Handed, server: ConfiguredServer) -> Handed:
    """Return the same with what a server really gets noted for each value: it may stand in the address, or in a part that is no secret."""
    given = (
        [server.address, *handed.headers(server).values()]
        if server.address
        else [*map(handed.word, server.words[1:]), *handed.variables(server).values()]
    )
    return replace(
        handed, values=tuple(replace(one, handed=bool(_replace_values([one], given, str)[1])) for one in handed.values)
    )


def _resolved_secrets(server: ConfiguredServer, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the secrets that are in variables and headers once what they refer to is in them, as a password in a URL."""
    bare = Handed(environ=environ)
    variables = {name: bare.resolved(value) for name, value in server.environ.items() if _REFERENCE.search(value)}
    headers = {name: bare.resolved(value) for name, value in server.headers.items() if _REFERENCE.search(value)}
    return [(one.name, one.value) for one in (*in_variables(variables), *in_headers(headers))]


def _is_kept(name: str, variable: str, value: str | None, known: set[str]) -> bool:
    """Whether a stranger gets no real value of a variable that `name` refers to: it is no path, address or number, or may be a secret."""
    if is_credential_name(variable):
        return True
    return value is not None and (is_credential_name(name) or value in known or not is_plain(value))


def _closed_headers(server: ConfiguredServer) -> frozenset[str]:
    """Return the names of the headers that hold a secret, or refer to one."""
    referring = {name for name, value in server.headers.items() if _REFERENCE.search(value) or is_reference(value)}
    return frozenset(referring | {one.name for one in server.secrets if one.place == "headers"})


def _references(server: ConfiguredServer) -> Iterator[tuple[str, str]]:
    """Yield the name of each variable or header with a reference, and the variable that it refers to."""
    yield from ((name, name) for name in server.passed if name not in server.environ)
    for name, value in (*server.environ.items(), *server.headers.items()):
        yield from ((name, _referred(found)) for found in _REFERENCE.finditer(value))


def _referred(found: re.Match[str]) -> str:
    return next(name for name in found.groups() if name)


def _replace_values(
    values: Sequence[SecretValue], data: Any, put: Callable[[str], str]
) -> tuple[Any, set[SecretValue]]:
    """Return data with what `put` gives for the name of each value that is in its texts, and the values that were."""
    there = sorted((one for one in values if one.text), key=lambda one: len(one.text), reverse=True)
    if not there:
        return data, set()
    pattern = re.compile("|".join(f"({_pattern(one.text)})" for one in there))
    found: set[SecretValue] = set()

    def replaced(match: re.Match[str]) -> str:
        one = there[(match.lastindex or 1) - 1]
        found.add(one)
        return put(one.name)

    return _mapped(data, lambda text: pattern.sub(replaced, text)), found


def _pattern(value: str) -> str:
    """Return the pattern of a value in each form; a short one as a whole word."""
    whole = "|".join(map(re.escape, sorted(secret_forms(value), key=len, reverse=True)))
    return whole if len(value) >= _INSIDE else rf"(?<!\w)(?:{whole})(?!\w)"


def _mapped(data: Any, change: Callable[[str], str]) -> Any:
    if isinstance(data, str):
        return change(data)
    if isinstance(data, Mapping):
        return dict(zip(_names(data, change), [_mapped(one, change) for one in data.values()], strict=True))
    if isinstance(data, list | tuple):
        return [_mapped(one, change) for one in data]
    return data


def _names(data: Mapping[Any, Any], change: Callable[[str], str]) -> list[Any]:
    """Return the names of members, changed; with a count where there is one of that name, so that no member takes another's place."""
    changed = [change(name) if isinstance(name, str) else name for name in data]
    taken = {name for name, new in zip(data, changed, strict=True) if name == new}
    counts: dict[Any, int] = {}
    names = []
    for name, new in zip(data, changed, strict=True):
        kept = new
        while name != new and kept in taken:
            counts[new] = counts.get(new, 1) + 1
            kept = f"{new}{counts[new]}"
        taken.add(kept)
        names.append(kept)
    return names
