"""The verb that an operation says, wherever it says one: in its name, its path, the sentences about it.

A name: `calendar.events.insert`, `GET_DeleteVolume`. A path: `/{id}/start`, `:cancel`. A sentence: what it begins with, and a second
verb, as in “Returns the messages and marks them as read”.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from mcpfactory_codegen.ir import ApiParameter
from mcpfactory_codegen.text import plain, words
from mcpfactory_codegen.verbs import (
    ACTIONS,
    DESTROYS,
    MAY,
    MAYBE,
    NOT_FIRST,
    NOUN_HEADS,
    NOUNS_OF_ASKING,
    NOUNS_TOO,
    READS,
    RESTORES,
    SHOWS,
    WRITES,
    verbs,
)

__all__ = [
    "Said",
    "action_of",
    "beginning",
    "is_rpc",
    "of_acting",
    "of_clause",
    "of_ending",
    "of_included",
    "of_joined",
    "of_name",
    "of_pair",
    "of_path",
    "of_text",
    "says_each",
    "says_replaced",
    "sentences",
    "without_method",
]

_ENDINGS: Final = (
    ("ies", "y"), ("es", ""), ("s", ""), ("ing", "e"), ("ting", "t"), ("ting", ""), ("ning", "n"), ("ing", ""),
)  # fmt: skip

_KNOWN: Final = READS | SHOWS | DESTROYS | RESTORES | WRITES | MAYBE
_FALSE_S: Final = frozenset({"is", "has", "does", "access", "process", "address"})
_PARTICLES: Final = verbs("in into out up off down")


SaidKind = Literal["", "reads", "shows", "writes", "destroys", "restores", "unknown"]


@dataclass(frozen=True, slots=True)
class Said:
    """The verb of one source: what it does; whether it could as well be a noun.

    "" is a verb that says nothing, or none; "unknown" a word that is a verb by where it stands, as in “Ring a lost phone”.
    """

    kind: SaidKind = ""
    verb: str = ""
    weak: bool = False

    @property
    def changes(self) -> bool:
        """Whether it says that something is changed."""
        return self.kind in {"writes", "destroys", "restores"}

    @property
    def reads(self) -> bool:
        """Whether it says that something is read."""
        return self.kind in {"reads", "shows"}

    @property
    def unclear(self) -> bool:
        """Whether the verb is a noun as often as not."""
        return self.weak or self.verb in NOUNS_TOO

    @property
    def unknown(self) -> bool:
        """Whether it is a verb of which nobody knows what it does."""
        return self.kind == "unknown"

    @property
    def clear(self) -> bool:
        """Whether it says enough to decide."""
        return self.kind not in {"", "shows", "unknown"} and not self.weak


_KINDS: Final[tuple[tuple[SaidKind, bool, frozenset[str]], ...]] = (
    ("destroys", False, DESTROYS),
    ("restores", False, RESTORES),
    ("writes", False, WRITES),
    ("reads", False, READS),
    ("writes", True, MAYBE),
    ("shows", False, SHOWS),
)


def said_by(word: str) -> Said:
    """Return what a verb in its base form says."""
    return next((Said(kind, word, weak) for kind, weak, known in _KINDS if word in known), Said())


def phrasal(found: Sequence[str]) -> str:
    """Return the first verb, as one word where a particle changes what it means: check in, sign up, opt out."""
    joined = "".join(found[:2]).replace("into", "in") if len(found) > 1 and found[1] in _PARTICLES else ""
    return joined if joined in WRITES else found[0]


def base_of(word: str, known: frozenset[str] = _KNOWN) -> str:
    """Return the base of a verb in the third person or as a gerund, where that is a verb that is known."""
    if word in known:
        return word
    for ending, instead in _ENDINGS:
        stem = word.removesuffix(ending) + instead
        if word.endswith(ending) and word not in _FALSE_S and stem in known:
            return stem
    return word


# --- names and paths ---


_HUMP: Final = re.compile(r"[a-z][A-Z]")
_ACTION: Final = re.compile(r"[#?&](?:Action|action|operation|method|cmd|X-Amz-Target)=(?:[\w-]+\.)?([\w-]+)")
_FILE: Final = re.compile(
    r"\.(json|xml|csv|txt|html|pdf|yaml|yml|atom|rss|png|jpe?g|gif|svg|zip|php|aspx?|do|cgi|jsp)\Z", re.I
)
_DOTTED: Final = re.compile(r"/(?:[a-z][A-Za-z0-9]*\.)+[a-z][A-Za-z]*\Z")


def without_method(name: str, method: str) -> str:
    """Return a name without the method in front, which says nothing: `GET_DeleteVolume`, `post_users_id`, `PostTopups`.

    “get” says something as a word, unless it is written as the method.
    """
    found = re.match(r"([A-Za-z]+)[_./ -](?=.)|(Post|Put|Patch)(?=[A-Z])", name)
    said = found[0].strip("_./ -") if found else ""
    if found and said.upper() == method.upper() and (said.isupper() or said.lower() in {"post", "put", "patch"}):
        name = name[found.end() :]
    return re.sub(rf"[_./ -]{re.escape(method)}\Z", "", name, flags=re.I)


def of_name(name: str) -> tuple[Said, bool]:
    """Return the verb of a name, and whether it stands elsewhere than at the beginning."""
    parts = [part for part in re.split(r"[./:]", name) if words(part)]
    if not parts:
        return Said(), False
    own = parts[-1]
    if "_" in own and _HUMP.search(own):  # two spellings in one: Attachments_GetAttachment, admin_inviteRequests_list
        alone = (said_by(part.lower()) for part in own.split("_"))
        if exact := next((said for said in alone if said.kind and not said.weak), None):
            return exact, False
        return _of_words(_spelt(own.rpartition("_")[2]))
    return _of_words(_spelt(own))


def _spelt(name: str) -> list[str]:
    return [word for word in words(name) if not word.isdigit()]


def _of_words(found: list[str]) -> tuple[Said, bool]:
    """Return the verb of the words of a name: the first, else the last, else one between them."""
    lead = found
    while len(lead) > 1 and lead[0] in NOT_FIRST:
        lead = lead[1:]
    first = said_by(phrasal(lead)) if lead else Said()
    last = said_by(lead[-1]) if len(lead) > 1 and lead[-1] != "read" else Said()  # mark as read
    between = (said_by(word) for word in lead[1:-1])
    inner = next((one for one in between if one.clear and one.verb not in NOUNS_TOO), Said())
    if first.kind and first.kind != "shows" and not (first.changes and first.unclear):
        return first, False
    if last.clear and not (first.kind and last.unclear):
        return last, True
    if inner.kind:
        return inner, True
    if first.changes and len(lead) > 1 and lead[-1] in NOUN_HEADS and first.verb in NOUNS_TOO:
        return Said(first.kind, first.verb, weak=True), False
    return first, False


def of_ending(name: str) -> Said:
    """Return the change that a name ends with, where what it begins with may be a noun: `checkCreate`, `listUpdate`.

    Behind `list` alone a verb counts that may be a noun, too: what is listed is several, so `list_archive` archives a list.
    """
    parts = [part for part in re.split(r"[./:]", name) if words(part)]
    found = _spelt(parts[-1]) if parts else []
    if len(found) < 2 or found[0] not in NOUNS_OF_ASKING:
        return Said()
    last = said_by(found[-1])
    return last if last.changes and (not last.weak or (found[0] == "list" and len(found) == 2)) else Said()


def of_joined(name: str) -> Said:
    """Return the change in a name of two verbs: `searchAndCreate`, `get_or_create_user`."""
    found = words(name)
    for place, word in enumerate(found[1:-1], 1):
        said = said_by(found[place + 1])
        noun = said.weak or (said.unclear and found[-1] in NOUN_HEADS)
        if word in {"and", "or", "then"} and said.changes and not noun:
            return said
    return Said()


def of_pair(path: str) -> Said:
    """Return the change in a path that ends with a verb of asking and another: `/lookup-or-create`."""
    segment = path.partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")[2]
    found = words(segment)
    return of_joined(segment) if found and said_by(found[0]).reads else Said()


def is_rpc(path: str) -> bool:
    """Whether the path names the action, so that the method says nothing: `/#Action=DeleteVolume`, `/chat.postMessage`."""
    return bool(_ACTION.search(path) or (_DOTTED.search(path) and not _FILE.search(path)))


def action_of(parameter: ApiParameter) -> str:
    """Return the action that a parameter with one possible value names: `?Action=DeleteVolume`."""
    if parameter.place not in {"query", "header"} or parameter.name not in {"Action", "X-Amz-Target"}:
        return ""
    schema = parameter.schema if isinstance(parameter.schema, dict) else {}
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return str(values[0]) if isinstance(values, list) and len(values) == 1 else ""


def of_path(path: str) -> Said:
    """Return the verb that a path ends with: `/logout`, `:cancel`, `/{id}/start`, `#Action=DeleteVolume`."""
    if found := _ACTION.search(path):
        return _of_words(list(words(found[1])))[0]
    path = _FILE.sub("", path.partition("#")[0].partition("?")[0].rstrip("/"))
    before, _, segment = path.rpartition("/")
    literal = re.sub(r"^.*[}:.]", "", segment) if not segment.endswith("}") else ""
    found_words = [word for word in words(literal) if word not in NOT_FIRST] or list(words(literal))
    if not found_words:
        return Said()
    said = said_by(found_words[0])
    acted = ":" in segment or (before.endswith("}") and len(found_words) == 1)
    if len(found_words) > 1 and (said.kind == "" or said.unclear):
        return Said()
    return Said(said.kind, said.verb, weak=said.unclear and not acted)


def of_acting(path: str) -> str:
    """Return the verb that is done to what stands before it in a path, clear or not: `/invoices/{id}/void`, `/users/{id}:block`; or ""."""
    before, _, segment = path.partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")
    own, _, action = segment.rpartition(":")
    literal = words(action if own else segment)
    if segment.endswith("}") or len(literal) != 1 or not (own or before.endswith("}")):
        return ""
    known = literal[0] in ACTIONS or said_by(literal[0]).changes
    return literal[0] if known else ""


# --- sentences ---


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
    r"(?:\band|\bor|\bthen|,)\s+(?:then\s+|also\s+|either\s+|optionally\s+|automatically\s+|immediately\s+)*([a-z]+)(?:\s+(\w+)|\W*\Z)",
    re.I,
)
_BESIDE: Final = re.compile(
    r"(?:,|\bwhile)\s+(?:also\s+|then\s+|automatically\s+|optionally\s+)*([a-z]+ing)\s+(\w+)(?=([^,.;]{0,60}))",
    re.I,
)
"""What is done beside: `, marking them as read`."""
_NO_CHANGE_BESIDE: Final = verbs("allow enable ensure exclude extend hide ignore")
"""Verbs that, beside another, say what is in the answer or what it is for: `, excluding the closed ones`."""
_OFFERED: Final = re.compile(
    r"lists?\s+(?:an?|the|your|this)\s+(?:new\b|[^,.;]{1,60}?\b(?:for sale|(?:on|in|at|to) (?:the |an? |your )?\w*\s?(?:market|marketplace|exchange|shop|store)\b))",
    re.I,
)
"""To list is to offer: `List a new item`, `List the item on the marketplace`; a list of what is there has no new one."""
_SAFE_CLAUSE: Final = re.compile(
    r"\b(which|that|who|where|when|if|can|may|must|should|to|users?|you|not|been|how|whether|before|after)\b", re.I
)
_RELATIVE: Final = re.compile(r"\b(which|that|who|where|when|can|may|must|should|you|not|been)\b", re.I)


_EACH: Final = re.compile(
    r"\b(?:each|every) (?:call|request|invocation|time)\b[^.;]{0,40}?\b(?:makes?|creates?|adds?|sends?|appends?|charges?|increments?)\b"
    r"|\b(?:receiv|retriev|fetch|read|return|get|tak)(?:es|s|e)? and (?:then )?(?:deletes?|removes?)\b",
    re.I,
)
"""What a second call does again: `each call makes a new one`, `Receive and delete the first message`."""
_REPLACED: Final = re.compile(
    r"\b(?:upserts?|overwrit(?:es?|ten)|replac(?:es?|ed|ing)|(?:revoca|cancell?a|termina|rota|restora|invalida)tions?|deletions?"
    r"|removals?|erasures?|purges?|restores?|resets?|rollbacks?|rotate|(?:or|and|/) ?(?:then )?(?:updat|modif|edit|chang|set|delet|remov|cancel|mov)\w*)\b",
    re.I,
)
_INCLUDED: Final = re.compile(r"\b[Ii]ncluding\s+[^.;]{0,60}?\b(INSERT|UPDATE|DELETE|DROP|TRUNCATE|MERGE)\b[^.;]{0,60}")
_TAKES_AWAY: Final = re.compile(r"\b(?:DELETE|DROP|TRUNCATE)\b")


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


def says_each(text: str) -> bool:
    """Whether a text says that every call does it once more."""
    return bool(_EACH.search(beginning(text)))


def says_replaced(text: str) -> bool:
    """Whether a text says that what is there already is changed: “Create or update a book”, “Create a deletion”."""
    return bool(_REPLACED.search(beginning(text)))


def of_included(text: str) -> Said:
    """Return the change among the statements that a question may have: “any SQL, including UPDATE and DELETE”."""
    found = _INCLUDED.search(beginning(text))
    if not found:
        return Said()
    return Said("destroys", "delete") if _TAKES_AWAY.search(found[0]) else Said("writes", found[1].lower())


def of_text(sentence: str, *, later: bool = False, direct: bool = False) -> Said:
    """Return the verb that a sentence begins with, in any of “Delete …”, “Deletes …”, “Use this method to delete …”.

    `later`: a text before says that it reads, so that a verb which could be a noun is none. `direct`: only what the sentence begins with.
    """
    sentence = _ADDRESS.sub("", sentence)
    start = words(sentence[:200])
    if not start or start[0] in _CONDITIONS:
        return Said()
    if _OFFERED.match(sentence):
        return Said("writes", "list")
    if (both := _SLASHED.match(sentence)) and (said := said_by(base_of(both[1].lower()))).changes:
        return said
    led = _LEADS.match(sentence) or (base_of(start[0]) in MAY and " to " in sentence[:120])
    said = Said() if led else _of_phrase(start)
    if start[0] == "to" and not _SENT.search(sentence):
        return Said()
    if not said.kind and not direct:
        phrases = (words(sentence[one.end() : one.end() + 120]) for one in _LED.finditer(sentence[:200]))
        said = next((one for one in (_of_phrase(phrase, gerund=True) for phrase in phrases) if one.kind), Said())
    if not said.kind and not led and _COMMAND.match(sentence) and start[0] not in _NO_COMMAND:
        if _OF_ANSWER.match(sentence):
            return Said("shows", start[0])
        return Said("" if base_of(start[0], _ONLY_READ) in _ONLY_READ else "unknown", start[0])
    return Said() if later and said.changes and said.weak else said


_COMMAND: Final = re.compile(r"[A-Za-z]+ an? [a-z]|[A-Za-z]*[A-RT-Za-rt-z] (?:the|this|your|my|it|them) [a-z]")
"""What a sentence begins with whose first word is a verb: “Ring a lost phone”. “Accounts the user follows” begins with a noun."""
_OF_ANSWER: Final = re.compile(r"[A-Za-z]+ (?:an?|the|its|your) (?:answer|reply|response)s?\b")
"""What is done to the answer of the call itself, as in “Delay the response”, changes nothing."""
_ONLY_READ: Final = verbs(
    "classify combine derive dump examine explore highlight illustrate infer interpret measure outline paginate ping predict present rank"
    " recommend represent score sum survey tokenize trace visualise visualize"
)
"""Verbs that change nothing where a method of reading stands before them, and that are no verbs of reading elsewhere."""
_NO_COMMAND: Final = _CONDITIONS | verbs(
    "data details given information about above across after against along although among around as because behind below beside besides between both but during"
    " either equals except from here how inside instead into is it like near neither of off only onto over per plus same"
    " need needs recent since such than that then there these this those though through throughout to toward under unless until upon what whatever"
    " where whereas whether which who whole whose why within without all are was were will would can could should not no"
)


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
    third = verb != lead[0] and not _has_object(lead)
    return Said(said.kind, said.verb, weak=said.unclear and (said.weak or following in NOUN_HEADS or third))


def _has_object(lead: Sequence[str]) -> bool:
    """Whether “Sets color and brightness of the lamp” can only be a verb: behind a plural stands no noun and another beside it."""
    if len(lead) < 5 or lead[2] != "and" or not {"the", "a", "an"} & set(lead[3:]):
        return False
    return lead[1] not in _CONDITIONS | NOUN_HEADS | {"of", "from", "to"} and not lead[1].endswith(("ed", "ing", "ble"))


def of_clause(sentence: str, *, direct: bool = False) -> Said:
    """Return the second verb of a sentence, where it is a change: “Returns the messages and marks them as read”.

    `direct`: also one that follows the first at once, whatever comes after it: “Fetch and apply updates”. Behind a verb with a
    particle always: “Count down and launch”.
    """
    lead = words(sentence[:200])
    if not lead:
        return Said()
    if not said_by(base_of(lead[0])).kind:
        return Said()
    third = base_of(lead[0]) != lead[0]
    for found in _JOINED.finditer(sentence[:400]):
        word, following = found[1].lower(), (found[2] or "").lower()
        verb = base_of(word)
        said = said_by(verb)
        if not said.changes or (verb != word) != third or word.endswith("ing"):
            continue
        before = words(sentence[: found.start()])
        only = direct and len(before) == 1 and not said.unclear
        if found[0][0] != "," and (only or (len(before) == 2 and before[1] in _PARTICLES)):
            return Said(said.kind, verb)
        if following in _DETERMINER and not _SAFE_CLAUSE.search(sentence[: found.start()]):
            return Said(said.kind, verb)
    return _of_beside(sentence[:400])


def _of_beside(sentence: str) -> Said:
    """Return the change that is made beside what a sentence says first: “Gets a user, creating it if needed”.

    A verb that may be a noun counts where it marks something as something: “, ordering them by name” changes nothing.
    """
    for found in _BESIDE.finditer(sentence):
        said = said_by(base_of(found[1].lower()))
        if (
            not said.changes
            or said.verb in _NO_CHANGE_BESIDE
            or found[2].lower() not in _DETERMINER - {"each", "every"}
        ):
            continue
        if said.weak and not re.search(r"\bas\b", found[3]):
            continue
        if not _RELATIVE.search(sentence[: found.start()]):
            return Said(said.kind, said.verb)
    return Said()
