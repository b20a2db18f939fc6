"""The verb that a summary or description begins with, and a second one: “Returns the messages and marks them as read”."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from mcpfactory_codegen.effects.verbs import MAY, NOT_FIRST, NOUN_HEADS, Said, base_of, phrasal, said_by, verbs
from mcpfactory_codegen.text import plain, words

__all__ = ["beginning", "of_clause", "of_text", "sentences"]

_PREFIX: Final = re.compile(
    r"^(?:\[[^\]]{0,40}\]|\([^)]{0,40}\)|!?\[?(?:note|warning|deprecated|experimental|beta|preview|alpha|important|tip)\]?[:.!\]-]+"
    r"|[^A-Za-z0-9'\"/`(\[]+)\s*",
    re.I,
)
_ADDRESS: Final = re.compile(r"^`?/[\w{}/._-]*`?\s*")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"'(])|\n+")
_DETERMINER: Final = verbs(
    "a an the all any this that these those its it them their your his her one each every up out off"
)
_LOOKS: Final = verbs("check checks lookup lookups query queries search searches validation preflight scan")
_CALLED: Final = (("invoke", "action"), ("invoke", "function"))  # and the name of what is called follows
_CONDITIONS: Final = verbs("if when for in while once as before after by on with via at")
_READ_CHARACTERS: Final = 1200
_SENTENCES_READ: Final = 3
_LEADS: Final = re.compile(
    r"(?:use|call|invoke|hit|send|make|issue)s?\s+(?:this|the|an?)\s+(?:[\w`/{}.-]+\s+){0,4}?(?:endpoint|method|api|request|call|query|operation|function|route|service)\b",
    re.I,
)
_SLASHED: Final = re.compile(r"[A-Za-z]+ ?/ ?([A-Za-z]+)\b")
_SENT: Final = re.compile(r"\b(?:send|sending|make|call|use|submit|issue)\b", re.I)
_LED: Final = re.compile(
    r"\b(?:endpoint|api|method|operation|action|function|request|route|service|resource|call|command|/[\w{}/-]+`?)\s+"
    r"(?:(?:that|which|will|can|may|be|is|are|to|allows?|lets?|enables?|permits?|used|you|users?|developers|an|the|your|apps?|caller|clients?|third"
    r"|parties|for|also|automatically)\s+)*(?=[A-Za-z])|\b(?:allows?|enables?|lets?|permits?|used|you can|us)\s+(?:[\w-]+\s+){0,3}?to\s+|\byou can\s+"
    r"|\b(?:operation|endpoint|action)\s+",
    re.I,
)
_JOINED: Final = re.compile(
    r"(?:\band|\bor|\bthen|,)\s+(?:then\s+|also\s+|either\s+|optionally\s+|automatically\s+|immediately\s+)*([a-z]+)\s+(\w+)",
    re.I,
)
_SAFE_CLAUSE: Final = re.compile(
    r"\b(which|that|who|where|when|if|can|may|must|should|to|users?|you|not|been|how|whether|before|after)\b", re.I
)


@lru_cache(maxsize=4096)
def beginning(text: str) -> str:
    """Return the beginning of a text without markup, and without notes like “[Beta]” or “Deprecated:” in front."""
    shown = plain(text[:_READ_CHARACTERS]).replace("\\", "").strip()
    while (found := _PREFIX.match(shown)) and found.end():
        shown = shown[found.end() :]
    return shown


def sentences(text: str) -> list[str]:
    """Return the first sentences of a text."""
    return [one for one in _SENTENCE.split(beginning(text))[:_SENTENCES_READ] if one]


def of_text(sentence: str, *, later: bool = False, direct: bool = False) -> Said:
    """Return the verb that a sentence begins with, in any of “Delete …”, “Deletes …”, “Use this method to delete …”.

    `later`: a text before says that it reads, so that a verb which could be a noun is none. `direct`: only what the sentence begins with.
    """
    sentence = _ADDRESS.sub("", sentence)
    start = words(sentence[:200])
    if not start or start[0] in _CONDITIONS:
        return Said()
    if (both := _SLASHED.match(sentence)) and (said := said_by(base_of(both[1].lower()))).changes:
        return said
    led = _LEADS.match(sentence) or (base_of(start[0]) in MAY and " to " in sentence[:120])
    said = Said() if led else _of_phrase(start)
    if start[0] == "to" and not _SENT.search(sentence):
        return Said()
    if not said.kind and not direct:
        phrases = (words(sentence[one.end() : one.end() + 120]) for one in _LED.finditer(sentence[:200]))
        said = next((one for one in (_of_phrase(phrase, gerund=True) for phrase in phrases) if one.kind), Said())
    return Said() if later and said.changes and said.weak else said


def _of_phrase(found: tuple[str, ...], *, gerund: bool = False) -> Said:
    """Return the verb that words begin with; before a noun or “of” it is weak, or none."""
    lead = list(found[2:14] if found[:2] in _CALLED else found[:12])
    while len(lead) > 1 and (lead[0] in NOT_FIRST or (lead[0].endswith("ly") and lead[0] not in {"apply", "reply"})):
        lead = lead[1:]
    if not lead:
        return Said()
    verb = lead[0] if lead[0].endswith("ing") and not gerund else base_of(lead[0])
    verb = phrasal([verb, *lead[1:2]])
    if lead[:2] == ["get", "started"]:
        return Said()
    said = said_by(verb)
    if verb == "receive":  # what is sent to it; as the name of an operation it takes something out of a queue
        return Said("shows", verb)
    if verb in {"perform", "do", "make"} and not _LOOKS.isdisjoint(lead[1:6]):
        return Said("shows", verb)
    if not said.changes:
        return said
    following = lead[1] if len(lead) > 1 else ""
    if following == "of" or (not following and verb != lead[0]):
        return Said()
    if following in _DETERMINER:
        return Said(said.kind, said.verb)
    return Said(said.kind, said.verb, weak=said.unclear and (said.weak or following in NOUN_HEADS or verb != lead[0]))


def of_clause(sentence: str, *, direct: bool = False) -> Said:
    """Return the second verb of a sentence, where it is a change: “Returns the messages and marks them as read”.

    `direct`: also one that follows the first at once, whatever comes after it: “Fetch and apply updates”.
    """
    lead = words(sentence[:200])
    if not lead:
        return Said()
    if not said_by(base_of(lead[0])).kind:
        return Said()
    third = base_of(lead[0]) != lead[0]
    for found in _JOINED.finditer(sentence[:400]):
        word, following = found[1].lower(), found[2].lower()
        verb = base_of(word)
        said = said_by(verb)
        if not said.changes or (verb != word) != third or word.endswith("ing"):
            continue
        before = words(sentence[: found.start()])
        if direct and len(before) == 1 and not said.unclear and found[0][0] != ",":
            return Said(said.kind, verb)
        if following in _DETERMINER and not _SAFE_CLAUSE.search(sentence[: found.start()]):
            return Said(said.kind, verb)
    return Said()
