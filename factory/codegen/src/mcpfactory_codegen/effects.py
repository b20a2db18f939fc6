"""Effect of an operation: read, write or destroy. Pure.

The effect depends on the method and on the verbs in name, path, summary and description; see docs/reference/effects.md.
Clients call a read-only tool without confirmation, so that a doubtful operation must not be read-only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal

from mcpfactory_codegen.ir import ApiOperation, ApiParameter
from mcpfactory_codegen.text import is_plural, markup_to_plain_text, word_group, words

_ENDINGS: Final = (
    ("ies", "y"), ("es", ""), ("s", ""), ("ing", "e"), ("ting", "t"), ("ting", ""), ("ning", "n"), ("ing", ""),
)  # fmt: skip


def verb_infinitive(word: str, known: frozenset[str]) -> str:
    """Return the infinitive of a word in -s or -ing if the infinitive is in `known`, else the word."""
    if word in known:
        return word
    stems = (word.removesuffix(ending) + instead for ending, instead in _ENDINGS if word.endswith(ending))
    return next((stem for stem in stems if stem in known), word)


READ_VERBS: Final = word_group("read-verbs")
DISPLAY_VERBS: Final = word_group("display-verbs")
DESTRUCTIVE_VERBS: Final = word_group("destructive-verbs")
ADDITIVE_VERBS: Final = word_group("additive-verbs")
NON_IDEMPOTENT_VERBS: Final = word_group("non-idempotent-verbs")
WRITE_VERBS: Final = word_group("write-verbs")
AMBIGUOUS_VERBS: Final = word_group("ambiguous-verbs")
VERBS_ALSO_NOUNS: Final = word_group("verbs-also-nouns")
UNAMBIGUOUS_WRITE_VERBS: Final = (WRITE_VERBS | DESTRUCTIVE_VERBS) - VERBS_ALSO_NOUNS
"""Verbs for changes, without verbs that can also be nouns."""
NOUN_HEADS: Final = word_group("noun-heads")
SKIPPED_FIRST_WORDS: Final = word_group("skipped-first-words")
ISSUED_OBJECTS: Final = word_group("issued-objects")
QUERY_VERBS: Final = word_group("query-verbs")
OTHER_VERBS: Final = word_group("other-verbs")
_RATHER_NOUNS: Final = word_group("rather-nouns")
METHODS: Final = frozenset({"get", "put", "post", "delete", "patch", "head", "options", "trace", "query"})
GENERIC_VERBS: Final = word_group("generic-verbs")
ACTION_VERBS: Final = word_group("action-verbs")
VERBS: Final = (
    READ_VERBS | DISPLAY_VERBS | DESTRUCTIVE_VERBS | WRITE_VERBS | AMBIGUOUS_VERBS | OTHER_VERBS | METHODS
) - _RATHER_NOUNS
"""All verbs with which a name can start."""


EffectKind = Literal["reads", "writes", "destroys"]
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
"""HTTP methods that change nothing (RFC 9110 §9.2.1)."""
_IDEMPOTENT: Final = frozenset({"PUT", "DELETE"})
_REPLACES: Final = frozenset({"PUT", "PATCH", "DELETE"})
"""Methods that always change or replace existing resources (RFC 9110 §9.3.4, RFC 5789 §2)."""
_CHANGES: Final = WRITE_VERBS | DESTRUCTIVE_VERBS | AMBIGUOUS_VERBS
_ENUMERATES: Final = QUERY_VERBS - {"fetch", "get", "retrieve"}
_KNOWN: Final = READ_VERBS | DISPLAY_VERBS | _CHANGES

_ACTION: Final = re.compile(r"[#?&](?:Action|action|operation|method|cmd|X-Amz-Target)=(?:[\w-]+\.)?([\w-]+)")
_FILE: Final = re.compile(
    r"\.(json|xml|csv|txt|html|pdf|yaml|yml|atom|rss|png|jpe?g|gif|svg|zip|php|aspx?|do|cgi|jsp)\Z", re.I
)
_DOTTED: Final = re.compile(r"/(?:[a-z][A-Za-z0-9]*\.)+[a-z][A-Za-z]*\Z")
_METHOD_FIRST: Final = re.compile(
    r"(GET|HEAD|DELETE|PATCH|PUT|POST|OPTIONS)_|(?:post|put|patch)[_./ -]|(?:Post|Put|Patch)(?=[A-Z])"
)

_READ_CHARACTERS: Final = 1200  # maximum characters of a text to read
_SENTENCES_READ: Final = 3  # maximum sentences to read
_NOTE: Final = re.compile(
    r"^(?:\[[^\]]{0,40}\]|\([^)]{0,40}\)|!?\[?(?:note|warning|deprecated|experimental|beta|preview|alpha|important|tip)\]?[:.!\]-]+"
    r"|[^A-Za-z0-9'\"/`(\[]+|`?/[\w{}/._-]*`?)\s*",
    re.I,
)
_SENTENCE: Final = re.compile(r"(?<=[^.]{3}[.!?])\s+(?=[A-Za-z`*\"'(])|\n+")
_LED: Final = re.compile(
    r"\b(?:endpoint|api|method|operation|action|function|request|route|service|resource|call|command|/[\w{}/-]+`?)\s+"
    r"(?:(?:that|which|will|can|may|be|is|are|to|allows?|lets?|enables?|permits?|used|you|users?|developers|an|the|your|apps?|caller|clients?|third"
    r"|parties|for|also|automatically)\s+)*(?=[A-Za-z])|\b(?:allows?|enables?|lets?|permits?|used|you can|us)\s+(?:[\w-]+\s+){0,3}?to\s+|\byou can\s+",
    re.I,
)
"""Phrases such as “Use this method to …” and “This endpoint allows you to …” before the verb of a sentence."""
_LEADS: Final = word_group("leads")
_SENT: Final = re.compile(r",?\s*\b(?:send|make)(?:ing)? an? [A-Z]+\s+(?:request|call)\b")
_JOINED: Final = re.compile(
    r"(?:\band\b|\bor\b|\bthen\b|,|\bwhile\b|/)\s*(?:(?:then|also|either|optionally|automatically|immediately)\s+)*([a-z]+)(?:\s+([a-z]+)|\W*\Z)",
    re.I,
)
"""A second verb, and the word after the verb."""
_DETERMINER: Final = word_group("determiners")
_RELATIVE: Final = re.compile(r"\b(which|that|who|where|when|can|may|must|should|you|not|been)\b", re.I)
_COMMAND: Final = re.compile(
    r"(?:[A-Za-z]+ an?|[A-Za-z]*[A-RT-Za-rt-z] (?:the|this|your|my|it|them)) (?!response|answer|reply)[a-z]"
)
"""Start of a sentence whose first word is a verb, such as “Ring a lost phone”, but not “Accounts the user follows”."""
_NO_COMMAND: Final = word_group("no-commands")
_EACH: Final = re.compile(
    r"\b(?:each|every) (?:call|request|invocation|time)\b[^.;]{0,40}?\b(?:makes?|creates?|adds?|sends?|appends?|charges?|increments?)\b"
    r"|\b(?:receiv|retriev|fetch|read|return|get|tak)(?:es|s|e)? and (?:then )?(?:deletes?|removes?)\b",
    re.I,
)
"""Phrases for calls that have a new effect each time, such as “each call makes a new token”."""
_REPLACED: Final = re.compile(
    r"\b(?:upserts?|overwrit(?:es?|ten)|replac(?:es?|ed|ing)|(?:revoca|cancell?a|termina|rota|restora|invalida)tions?|deletions?"
    r"|removals?|reversals?|erasures?|purges?|restores?|resets?|rollbacks?|rotate|(?:or|and|/) ?(?:then )?(?:updat|modif|edit|chang|set|delet|remov|cancel|mov)\w*)\b",
    re.I,
)
"""Phrases for changes to existing resources, such as “Create or update a book” and “Create a deletion”."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of an operation.

    `verb` is "" if the HTTP method determines the effect. `contradicts` is True if the method is safe but the words
    describe a change. `adds` is True if a second call has a further effect. `additive` is True if the words describe
    only a creation or addition.
    """

    kind: EffectKind
    verb: str = ""
    contradicts: bool = False
    adds: bool = False
    additive: bool = False


@dataclass(frozen=True, slots=True)
class _VerbMatch:
    """The verb in a name, a path or a text.

    `clear` is True if the word cannot be a noun.
    """

    verb: str = ""
    clear: bool = False
    unknown: bool = False

    @property
    def changes(self) -> bool:
        return self.verb in _CHANGES

    @property
    def reads(self) -> bool:
        return self.verb in READ_VERBS or self.verb in DISPLAY_VERBS


@dataclass(frozen=True, slots=True)
class _OperationWords:
    """Words of an operation.

    `second` is a second verb of a name or sentence. `every` has all words of the name and of the last path segment.
    """

    name: _VerbMatch
    path: _VerbMatch
    texts: tuple[_VerbMatch, ...]
    second: _VerbMatch
    every: tuple[str, ...]
    first: str
    text: str

    @property
    def said(self) -> tuple[_VerbMatch, ...]:
        return (self.name, *self.texts, self.second)


def effect_of(operation: ApiOperation) -> Effect:
    """Return the effect of an operation of an API document."""
    method, path = operation.method, operation.path
    action = next(filter(None, map(_action_of, operation.parameters)), "")
    path = f"{path}#Action={action}" if action else path
    graphql = operation.body.graphql if operation.body is not None else ""
    if graphql:  # the path is only a label, and a query is as safe as a GET request (GraphQL §2.3)
        method, path = ("QUERY" if graphql.startswith("query") else "PATCH"), ""
    found = _METHOD_FIRST.match(operation.operation_id)
    said = found[0].strip("_./ -").upper() if found else ""
    name = operation.operation_id[len(found[0]) :] if found and said == method else operation.operation_id
    name = re.sub(rf"[_./ -]{re.escape(operation.method)}\Z", "", name, flags=re.I)
    return _effect(method, path, name, (operation.summary, operation.description))


def is_read_request(method: str, path: str) -> bool:
    """Return True if the method or the path shows that a request only reads data (`POST /books/search`).

    The path may contain parameter values.
    """
    return _effect(method, path, "", ()).kind == "reads"


def sounds_like_change(name: str, *texts: str) -> bool:
    """Return True if the words of a tool's name or texts suggest that the tool may change something."""
    found = _words(name, "", texts)
    loud = not _CHANGES.isdisjoint(words(name)) and not (found.name.reads and found.name.clear)
    return loud or found.second.changes or any(said.changes and said.clear for said in found.texts)


def is_idempotent(effect: Effect, method: str) -> bool:
    """Return True if the method and the words show that a second call has no further effect."""
    return effect.kind == "reads" or (method in _IDEMPOTENT and not effect.adds)


def tool_annotations(effect: Effect, method: str) -> dict[str, Any]:
    """Return the annotations of the tool (MCP schema, ToolAnnotations).

    `destructiveHint` is false only if the words describe an addition. If the effect is uncertain, the hint is omitted,
    because the default of the hint is true.
    """
    if effect.kind == "reads":
        return {"readOnlyHint": True, "openWorldHint": True}
    known = {"destructiveHint": effect.kind == "destroys"} if effect.kind == "destroys" or effect.additive else {}
    return {"readOnlyHint": False, **known, "idempotentHint": is_idempotent(effect, method), "openWorldHint": True}


def is_certainly_read_only(method: str, path: str) -> bool:
    """Return True if the method is safe, and the path does not name another action."""
    rpc = _ACTION.search(path) or (_DOTTED.search(path) and not _FILE.search(path))
    return method in SAFE_METHODS and not rpc


@lru_cache(maxsize=4096)
def _effect(method: str, path: str, name: str, texts: tuple[str, ...]) -> Effect:
    found = _words(name, path, texts)
    certain = is_certainly_read_only(method, path)
    changed = method not in SAFE_METHODS | {"POST"}
    change = "" if changed else _change(found, certain=certain, reading=method in SAFE_METHODS)
    if not changed and not change and (certain or _asks(found, reading=method in SAFE_METHODS)):
        return Effect("reads", "" if certain else found.name.verb or found.path.verb)
    clear = (one.verb for one in (*found.said, found.path) if one.clear)
    away = next((verb for verb in (*clear, *found.every) if verb in DESTRUCTIVE_VERBS), "")
    kind: EffectKind = "destroys" if away or method == "DELETE" else "writes"
    effect = Effect(kind, away or change, certain and not changed, _adds(path, found))
    return replace(effect, additive=kind == "writes" and method not in _REPLACES and _additive(path, found))


def _change(found: _OperationWords, *, certain: bool, reading: bool) -> str:
    """Return the word that describes a change, or "".

    Words that can be nouns do not count if the operation is `certain` to be read-only.
    """
    reads = any(said.reads for said in found.texts)
    if change := next((one for one in (*found.texts, found.second) if one.changes and one.clear), None):
        return change.verb
    # a word of the name that may be a noun counts as a verb if a text starts with the same word
    twice = any(said.verb == found.name.verb for said in found.texts)
    always = found.name.verb in UNAMBIGUOUS_WRITE_VERBS
    if found.name.changes and (
        twice or not certain or (always and found.name.clear) or ((always or found.name.clear) and not reads)
    ):
        return found.name.verb
    if found.path.changes and found.path.clear and not (certain and (reads or found.name.reads)):
        return found.path.verb
    unknown = next((said.verb for said in found.texts if said.unknown), "")
    if unknown and not reads and not (certain and found.name.reads):
        return unknown
    if reading:
        return ""
    doubtful = UNAMBIGUOUS_WRITE_VERBS if reads else _CHANGES
    spoken = (verb_infinitive(word, UNAMBIGUOUS_WRITE_VERBS) for word in words(found.first))
    changing = (
        *(word for word in found.every if word in doubtful),
        *(word for word in spoken if word in UNAMBIGUOUS_WRITE_VERBS - _LEADS),
    )
    return next(iter(changing), "")


def _asks(found: _OperationWords, *, reading: bool) -> bool:
    """Return True if the verbs of name, path or text show that a request reads data.

    A verb at the end of a name can be a noun (saved search), so path or text must contain the same verb. The verb
    “list” must have a plural object. A POST operation named “get” can still create something, such as a token.
    `reading` means that the HTTP method is safe.
    """
    spoken = (*found.every, *words(found.text))
    lists = "list" in {found.name.verb, *(said.verb for said in found.texts)}
    issued = found.name.verb not in _ENUMERATES and not ISSUED_OBJECTS.isdisjoint(spoken)
    if not reading and (issued or (lists and not any(map(is_plural, words(found.text) or found.every)))):
        return False
    returned = any(said.reads for said in found.texts)
    asked = returned if reading else any(said.verb in QUERY_VERBS for said in found.texts)
    if found.name.verb in READ_VERBS:
        return found.name.clear or reading or found.name.verb in {found.path.verb, *(said.verb for said in found.texts)}
    if found.name.verb:
        return reading and found.name.reads and returned
    return asked or (found.path.verb in READ_VERBS and (returned or found.path.verb in _ENUMERATES))


def _additive(path: str, found: _OperationWords) -> bool:
    """Return True if the words describe a creation or addition, and no other change."""
    changes = [one.verb for one in found.said if one.changes]
    acted = path.rpartition("}/")[2] if "}/" in path else path.rpartition(":")[2] if ":" in path else ""
    acting = acted in ACTION_VERBS | _CHANGES and acted not in ADDITIVE_VERBS
    text = f"{' '.join(found.every)} {found.text}"
    return bool(changes) and ADDITIVE_VERBS.issuperset(changes) and not acting and not _REPLACED.search(text)


def _adds(path: str, found: _OperationWords) -> bool:
    """Return True if a second call has a further effect.

    The verb “add” does not count before an ID, as in `PUT /members/{id}`.
    """
    said = found.said if any(one.changes for one in found.said) and not found.path.clear else (*found.said, found.path)
    known = NON_IDEMPOTENT_VERBS - {"add"} if path.endswith("}") else NON_IDEMPOTENT_VERBS
    return bool(_EACH.search(found.text)) or any(one.verb in known for one in said)


def _words(name: str, path: str, texts: Sequence[str]) -> _OperationWords:
    own = next((part for part in reversed(re.split(r"[./:]", name)) if words(part)), "")
    path = path if _ACTION.search(path) else _FILE.sub("", re.split(r"[?#]", path, maxsplit=1)[0].rstrip("/"))
    segment = _ACTION.sub("", path).rpartition("/")[2]
    every = (*words(own), *(() if segment.endswith("}") else words(segment)))
    leads: list[_VerbMatch] = []
    seconds = [_second(" ".join(words(part)), named=True) for part in (own, segment)]
    for text in texts:
        told_in = _sentences(text)
        leads.append(_of_text(told_in[0], later=any(lead.reads for lead in leads)) if told_in else _VerbMatch())
        seconds += [_second(sentence) for sentence in told_in]
    second = next((one for one in seconds if one.changes), _VerbMatch())
    first = " ".join(sentence for text in texts for sentence in _sentences(text)[:1])
    shown = " ".join(sentence for text in texts for sentence in _sentences(text))
    return _OperationWords(_of_name(own), _of_path(path), tuple(leads), second, every, first, shown)


def _action_of(parameter: ApiParameter) -> str:
    """Return the only possible action of a parameter, such as `?Action=DeleteVolume`."""
    if parameter.place not in {"query", "header"} or parameter.name not in {"Action", "X-Amz-Target"}:
        return ""
    schema = parameter.schema if isinstance(parameter.schema, dict) else {}
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return str(values[0]) if isinstance(values, list) and len(values) == 1 else ""


def _of_name(name: str) -> _VerbMatch:
    """Return the verb of a name, marked `clear` only if it is the first word."""
    own = name.rpartition("_")[2] if re.search(r"[a-z][A-Z]", name) else name
    found = [word for word in words(own) if not word.isdigit()]
    while len(found) > 1 and found[0] in SKIPPED_FIRST_WORDS:
        found = found[1:]
    first = found[0] if found else ""
    if first in READ_VERBS or first in UNAMBIGUOUS_WRITE_VERBS:
        return _VerbMatch(first, clear=True)
    later = next((word for word in reversed(found[1:]) if word in READ_VERBS or word in UNAMBIGUOUS_WRITE_VERBS), "")
    if later:
        return _VerbMatch(later)
    noun = len(found) > 1 and found[-1] in NOUN_HEADS
    return _VerbMatch(first, clear=first in WRITE_VERBS and not noun) if first in _KNOWN else _VerbMatch()


def _of_path(path: str) -> _VerbMatch:
    """Return the verb at the end of a path, such as `/logout`, `:cancel`, `/{id}/start` and `#Action=DeleteVolume`."""
    if found := _ACTION.search(path):
        return _of_name(found[1])
    before, _, segment = path.rpartition("/")
    literal = "" if segment.endswith("}") else re.sub(r"^.*[}:.]", "", segment)
    found_words = [word for word in words(literal) if word not in SKIPPED_FIRST_WORDS] or list(words(literal))
    first = found_words[0] if found_words else ""
    acted = ":" in segment or (before.endswith("}") and len(found_words) == 1)
    if first not in _KNOWN or (len(found_words) > 1 and first not in UNAMBIGUOUS_WRITE_VERBS | READ_VERBS):
        return _VerbMatch()
    return _VerbMatch(first, clear=acted or first in UNAMBIGUOUS_WRITE_VERBS)


@lru_cache(maxsize=4096)
def _sentences(text: str) -> tuple[str, ...]:
    """Return the first sentences of a text, without markup and leading notes such as “[Beta]” or “Deprecated:”."""
    shown = _SENT.sub("", markup_to_plain_text(text[:_READ_CHARACTERS]).replace("\\", "")).strip()
    while (found := _NOTE.match(shown)) and found.end():
        shown = shown[found.end() :]
    return tuple(one for one in _SENTENCE.split(shown)[:_SENTENCES_READ] if one)


def _of_text(sentence: str, *, later: bool) -> _VerbMatch:
    """Return the first verb of a sentence such as “Delete …”, “Deletes …”, “Use this method to delete …”.

    `later` means that an earlier text of the operation describes a read. With `later`, a verb for a change counts only
    as the first word, and only if the word cannot be a noun.
    """
    start = words(sentence[:200])
    if not start or start[0] in {"to", "if", "when", "for"}:
        return _VerbMatch()
    led = [words(sentence[one.end() : one.end() + 120]) for one in _LED.finditer(sentence[:200])]
    called = verb_infinitive(start[0], _LEADS) in _LEADS and (bool(led) or " to " in sentence[:120])
    phrases = [*([] if called else [start]), *([] if later else led)]
    said = next((one for one in map(_of_phrase, phrases) if one.verb), _VerbMatch())
    if said.verb:
        return _VerbMatch() if later and said.changes and not said.clear else said
    if _COMMAND.match(sentence) and not led and start[0] not in _NO_COMMAND:
        return _VerbMatch(start[0], unknown=True)
    return _VerbMatch()


def _of_phrase(found: Sequence[str]) -> _VerbMatch:
    """Return the verb that starts a phrase.

    A verb that can be a noun is not marked `clear`. A word before “of” is never a verb.
    """
    while len(found) > 1 and (
        found[0] in SKIPPED_FIRST_WORDS or (found[0].endswith("ly") and found[0] not in {"apply", "reply"})
    ):
        found = found[1:]
    verb = verb_infinitive(found[0], _KNOWN) if found else ""
    if verb not in _KNOWN or found[:2] == ("get", "started"):
        return _VerbMatch()
    following = found[1] if len(found) > 1 else ""
    if verb not in _CHANGES:
        return _VerbMatch(verb, clear=True)
    if following == "of" or (not following and verb != found[0]):
        return _VerbMatch()
    third = verb != found[0] and found[2:3] != ("and",)
    noun = verb not in UNAMBIGUOUS_WRITE_VERBS and (verb in AMBIGUOUS_VERBS or following in NOUN_HEADS or third)
    return _VerbMatch(verb, clear=following in _DETERMINER or not noun)


def _second(sentence: str, *, named: bool = False) -> _VerbMatch:
    lead = words(sentence[:200])
    if not lead or verb_infinitive(lead[0], _KNOWN) not in _KNOWN:
        return _VerbMatch()
    for found in _JOINED.finditer(sentence[:400]):
        word, following = found[1].lower(), (found[2] or "").lower()
        known = WRITE_VERBS | DESTRUCTIVE_VERBS if word.endswith("ing") else _CHANGES
        verb = verb_infinitive(word, known)
        joined = found[0][0] != "," and word == verb and (not following or (named and verb in UNAMBIGUOUS_WRITE_VERBS))
        beside = following in _DETERMINER - {"each", "every"}
        if verb in known and (joined or beside) and not _RELATIVE.search(sentence[: found.start()]):
            return _VerbMatch(verb, clear=True)
    return _VerbMatch()
