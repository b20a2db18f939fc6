"""Whether an operation reads, writes or destroys: one rule for generation, generated tests and `validate`. Pure.

Read are the method, the verb of the name (operationId, or the name of a tool), the verb of the path, and the verbs that summary
and description begin with. The table in docs/reference/effects.md says what follows from them. Clients run a tool that is called
read-only without asking anybody: where the words leave a doubt, it is not called so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from mcpfactory_codegen.effects.phrases import (
    Said,
    action_of,
    beginning,
    is_rpc,
    of_acting,
    of_clause,
    of_ending,
    of_included,
    of_joined,
    of_name,
    of_pair,
    of_path,
    of_text,
    says_each,
    says_replaced,
    sentences,
    without_method,
)
from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.text import words
from mcpfactory_codegen.verbs import ADDITIVE, ADDS, ASKS, DESTROYS, ENUMERATES, ISSUED, MAYBE, NAMES_ONLY, WRITES

__all__ = [
    "READING",
    "Effect",
    "EffectKind",
    "annotations_of",
    "effect_of",
    "is_certain",
    "is_idempotent",
    "is_question",
    "sounds_like_change",
]

EffectKind = Literal["reads", "writes", "destroys"]
READING: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
"""Methods that promise to change nothing (RFC 9110 §9.2.1)."""
_IDEMPOTENT: Final = frozenset({"PUT", "DELETE"})
_PARTS: Final = frozenset({"body", "header", "headers"})
"""Parts of a message: `request headers` are those of a request, and nobody requests them."""
_REPLACES: Final = frozenset({"PUT", "PATCH", "DELETE"})
"""Methods that change or replace what is there (RFC 9110 §9.3.4, RFC 5789 §2), whatever the words say."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What an operation does. `verb` is the word that decided, "" where the method did.

    `contradicts`: the method promises to change nothing, and the words say that it changes something. `adds`: the words say that
    a second call does more than the first. `additive`: they say that something is created or added, and nothing else.
    """

    kind: EffectKind
    verb: str = ""
    contradicts: bool = False
    adds: bool = False
    additive: bool = False


@dataclass(frozen=True, slots=True)
class _Words:
    """All that an operation says of itself. `last`: the verb of the name does not stand at its beginning."""

    name: Said = field(default_factory=Said)
    last: bool = False
    path: Said = field(default_factory=Said)
    texts: tuple[Said, ...] = ()
    clause: Said = field(default_factory=Said)
    spoken: frozenset[str] = frozenset()
    each: bool = False
    replaces: bool = False


def effect_of(operation: ApiOperation) -> Effect:
    """Return what an operation of an API document does."""
    name = without_method(operation.operation_id, operation.method)
    texts = (operation.summary, operation.description)
    action = next(filter(None, (action_of(parameter) for parameter in operation.parameters)), "")
    path = f"{operation.path}#Action={action}" if action else operation.path
    graphql = operation.body.graphql if operation.body is not None else ""
    if graphql:  # its path only names it; a query promises what a GET does (GraphQL §2.3)
        method = "QUERY" if graphql.startswith("query") else "PATCH"
        return _decide(method, "", _read(name, "", texts, certain=method == "QUERY"))
    return _decide(operation.method, path, _read(name, path, texts, certain=is_certain(operation.method, path)))


def is_question(method: str, path: str) -> bool:
    """Whether a request reads by its method, or by its path (`POST /books/search`), which may have values in it."""
    return _decide(method, path, _read("", path, (), certain=is_certain(method, path))).kind == "reads"


def sounds_like_change(name: str, *texts: str) -> bool:
    """Whether a tool of which nothing but words is known may change something."""
    found = _read(name, "", texts, certain=False)
    asks = found.name.reads and not found.last
    loud = any(word in WRITES or word in DESTROYS or word in MAYBE for word in words(name))
    return (loud and not asks) or found.clause.changes or any(said.changes and not said.weak for said in found.texts)


def is_idempotent(effect: Effect, method: str) -> bool:
    """Whether a second call does no more than the first: the method promises it, and no word says otherwise."""
    return effect.kind == "reads" or (method in _IDEMPOTENT and not effect.adds)


def annotations_of(effect: Effect, method: str) -> dict[str, Any]:
    """Return the annotations of the tool (MCP schema, ToolAnnotations).

    Without `destructiveHint` a tool may be destructive: that it is not is said only where the words say so.
    """
    if effect.kind == "reads":
        return {"readOnlyHint": True, "openWorldHint": True}
    known = {"destructiveHint": effect.kind == "destroys"} if effect.kind == "destroys" or effect.additive else {}
    return {
        "readOnlyHint": False,
        **known,
        "idempotentHint": is_idempotent(effect, method),
        "openWorldHint": True,
    }


def _decide(method: str, path: str, found: _Words) -> Effect:
    effect = replace(_kind(method, path, found), adds=_adds(path, found))
    return replace(effect, additive=effect.kind == "writes" and method not in _REPLACES and _additive(path, found))


def _additive(path: str, found: _Words) -> bool:
    """Whether the words say that something is created or added, and none of them that anything is changed."""
    name = Said() if found.last else found.name
    told = [said for said in (name, *found.texts, found.clause) if said.kind and not said.reads]
    acted = of_acting(path)
    return (
        any(said.verb in ADDITIVE for said in told)
        and all(said.verb in ADDITIVE for said in told)
        and (not acted or acted in ADDITIVE)
        and not found.replaces
    )


def _adds(path: str, found: _Words) -> bool:
    """Whether the words say that a second call does more. What is added under its own name, `PUT /members/{id}`, is there once."""
    sources = [found.name, *found.texts, found.clause]
    if not found.path.weak or not any(said.changes for said in sources):
        sources.append(found.path)
    known = ADDS - {"add"} if path.endswith("}") else ADDS
    return found.each or any(said.changes and said.verb in known for said in sources)


def _kind(method: str, path: str, found: _Words) -> Effect:
    certain = is_certain(method, path)
    if method not in READING | {"POST"}:
        return _changing(method, found)
    change = _change(found, certain=certain)
    if change is not None:
        return _changing(method, found, change, contradicts=certain)
    unknown = _unknown(found)
    if unknown is not None and not (certain and found.name.reads):
        return _changing(method, found, unknown, contradicts=certain)
    if certain:
        return Effect("reads")
    if _asks(found, reading=method in READING):
        return Effect("reads", found.name.verb or found.path.verb)
    return _changing(method, found)


def _unknown(found: _Words) -> Said | None:
    """Return the verb that the texts begin with, where nobody knows what it does, and no text says that something is read."""
    if any(said.reads for said in found.texts):
        return None
    return next((said for said in found.texts if said.unknown), None)


def is_certain(method: str, path: str) -> bool:
    """Whether the method says that nothing is changed, and the path does not name another action."""
    return method in READING and not is_rpc(path)


def _change(found: _Words, *, certain: bool) -> Said | None:
    """Return the word that says that something is changed. `certain`: the method says the opposite, so a noun is no such word."""
    texts = [said for said in found.texts if said.changes]
    told = next((said for said in texts if not said.weak), None)
    reads = any(said.reads for said in found.texts)
    if told is not None:
        return told
    if found.clause.changes:
        return found.clause
    twice = any(said.verb == found.name.verb for said in texts)  # a noun in the name and in the text is a verb
    noun = found.name.weak or (reads and (found.last or found.name.unclear))
    if found.name.changes and (twice or not (certain and noun)):
        return found.name
    if found.path.changes and not found.path.weak and not (certain and (reads or found.name.reads)):
        return found.path
    return texts[0] if texts and not certain else None


def _asks(found: _Words, *, reading: bool) -> bool:
    """Whether a request whose method says nothing is a question: its name, its path or its text has a strong verb of reading.

    A verb at the end of a name may be a noun (saved search, wish list): text or path have to say the same. `reading`: the method is
    one of reading, after all.
    """
    issued = found.spoken & ISSUED - ({"access"} if "control" in found.spoken else set())
    if not reading and issued and found.name.verb not in ENUMERATES:
        return False
    told = any(said.kind == "reads" for said in found.texts)
    asked = told or any(said.verb == "return" for said in found.texts)
    if found.name.kind == "reads" and found.last and not reading and found.name.verb not in NAMES_ONLY:
        return found.name.verb in {found.path.verb, *(said.verb for said in found.texts)}
    if found.name.kind == "reads":
        return not found.last or reading or asked or found.path.kind == "reads"
    if found.name.kind:
        return reading and found.name.reads and asked
    if found.path.kind == "reads":
        return reading or asked or found.path.verb in ENUMERATES | {"lookup"}
    return asked if reading else any(said.verb in ASKS for said in found.texts)


def _changing(method: str, found: _Words, said: Said | None = None, *, contradicts: bool = False) -> Effect:
    """Return the effect of an operation that is not read-only: it destroys where method or words say so."""
    sources = (found.name, found.path, *found.texts, found.clause)
    away = next((one for one in sources if one.kind == "destroys" and not one.weak), None)
    if method == "DELETE":
        return Effect("destroys", away.verb if away else "")
    if away is not None and found.name.kind != "restores":
        return Effect("destroys", away.verb, contradicts)
    return Effect("writes", said.verb if said else "", contradicts)


def _repeats(name: str, path: str, text: str, verb: str) -> bool:
    """Whether a text is the name over again, of a part of a message that the path names: `request_headers`, "Request Headers", /headers."""
    own, place = words(name), words(path)
    return words(text) == own and verb not in place and own[-1:] == place[-1:] and own[-1] in _PARTS


def _read(name: str, path: str, texts: Sequence[str], *, certain: bool) -> _Words:
    said, last = of_name(name)
    leads: list[Said] = []
    clauses: list[Said] = []
    for text in texts:
        told_in = sentences(text)
        told = any(lead.reads for lead in leads)  # what a later text says besides is not its subject
        lead = of_text(told_in[0], later=told, direct=told and certain) if told_in else Said()
        leads.append(Said() if lead.weak and _repeats(name, path, text, lead.verb) else lead)
        clauses += [of_clause(sentence, direct=not certain) for sentence in told_in]
    ending = of_ending(name)
    if ending.changes and not certain and not any(lead.reads for lead in leads):
        said, last = ending, True
    spoken = frozenset(words(name)) | frozenset(word for text in texts for word in words(beginning(text)[:80]))
    included = () if certain else map(of_included, texts)
    clause = next((one for one in (of_joined(name), of_pair(path), *included, *clauses) if one.changes), Said())
    each = any(says_each(text) for text in texts)
    replaces = any(says_replaced(text) for text in (" ".join(words(name)), " ".join(words(path)), *texts))
    return _Words(said, last, of_path(path), tuple(leads), clause, spoken, each, replaces)
