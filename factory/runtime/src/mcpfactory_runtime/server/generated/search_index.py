"""A small index over tools: which fit a question best. Pure Python and no model; a thousand tools are indexed in tens of milliseconds.

BM25F (Robertson and Zaragoza, 2009, section 3.4): a word counts more in a name than in a description, and less the more tools
have it. What is added for APIs: words that mean alike count for each other at a discount; tools that have more of the
question's words win over those that have one of them often; so do tools whose name and path have nothing beside them
(`list_invoices` over `list_invoice_lines`); and the method that the question's verb suggests is preferred.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

__all__ = ["IndexedTool", "SearchIndex", "identifier_words", "stem"]

Json = dict[str, Any]

# field → (weight, usual number of words, how much longer fields are discounted)
_FIELDS: Final[dict[str, tuple[float, float, float]]] = {
    "name": (2.0, 4, 0.4),
    "title": (2.0, 6, 0.5),
    "path": (0.8, 4, 0.4),
    "group": (1.0, 1, 0.0),
    "description": (1.3, 40, 0.6),
    "arguments": (0.3, 8, 0.7),
}
_SATURATION: Final = 2.0  # k1 of BM25
_SYNONYM: Final = 0.8  # what a word counts that only means alike
_METHOD_MATCH: Final = 1.5  # factor for the method that the question suggests
_COVERAGE: Final = 0.7  # how much it matters which part of the question's words a tool has
_VERB: Final = 0.6  # how much verbs count that many tools share, beside nouns
_SELF: Final = 0.4  # how much "my" counts
_FIT: Final = 0.8  # how much it matters which part of a tool's name and path the question has
_DESCRIPTION: Final = 500  # characters that are indexed: what follows is detail
_VARIABLE: Final = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class IndexedTool:
    """What is indexed of one tool."""

    name: str
    title: str = ""
    description: str = ""
    operation: str = ""
    group: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The operation's method, "" when it is not known."""
        return self.operation.partition(" ")[0]


class SearchIndex:
    """Finds entries by their number."""

    def __init__(self, entries: Iterable[IndexedTool]) -> None:
        self._methods: list[str] = []
        self._cores: list[frozenset[str]] = []
        self._postings: dict[str, dict[int, float]] = {}
        for number, entry in enumerate(entries):
            self._methods.append(entry.method)
            path = identifier_words(_VARIABLE.sub("", entry.operation.partition(" ")[2]))
            name = identifier_words(entry.name)
            self._cores.append(frozenset([*name, *path]))
            for word, weight in _weights(entry, name, path).items():
                self._postings.setdefault(word, {})[number] = weight

    def search(self, question: str, limit: int, within: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Return the best entries with their scores, best first; `within` narrows which may be found."""
        words = dict.fromkeys(question_words(question))
        total: dict[int, float] = {}
        matched: dict[int, float] = {}
        whole = 0.0
        term_weights: dict[str, float] = {}
        for word in words:
            for other in synonyms(word):
                term_weights.setdefault(other, _SYNONYM)
            emphasis = _VERB if word in VERBS else _SELF if word == SELF else 1.0
            found, term_worth = self._scores(word)
            whole += term_worth * emphasis
            for number, (score, share) in found.items():
                total[number] = total.get(number, 0.0) + score * emphasis
                matched[number] = matched.get(number, 0.0) + share * term_worth * emphasis
        term_weights.update(dict.fromkeys(words, 1.0))
        methods = _methods(question)
        for number in total:
            covered = matched[number] / whole if whole else 0.0
            total[number] *= (1 - _COVERAGE + _COVERAGE * covered) * (1 - _FIT + _FIT * self._fit(number, term_weights))
            if self._methods[number] in methods:
                total[number] *= _METHOD_MATCH
        chosen = total if within is None else {number: total[number] for number in within if number in total}
        return sorted(chosen.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def _fit(self, number: int, term_weights: dict[str, float]) -> float:
        """Return what part of a tool's name and path the question has, rare words counting more."""
        has = all_ = 0.0
        for word in self._cores[number]:
            rarity = self._rarity(word)
            all_ += rarity
            has += rarity * term_weights.get(word, 0.0)
        return has / all_ if all_ else 0.0

    def _rarity(self, word: str) -> float:
        having = len(self._postings[word])
        return math.log(1 + (len(self._methods) - having + 0.5) / (having + 0.5))

    def _scores(self, word: str) -> tuple[dict[int, tuple[float, float]], float]:
        """Each entry's score for one word of the question and what part of it was met; and what the word is worth."""
        found: dict[int, tuple[float, float]] = {}
        term_worth = 0.0
        for other, factor in [(word, 1.0), *((one, _SYNONYM) for one in synonyms(word))]:
            postings = self._postings.get(other)
            if not postings:
                continue
            rarity = self._rarity(other)
            term_worth = max(term_worth, rarity * factor)
            for number, weight in postings.items():
                score = factor * rarity * weight / (_SATURATION + weight)
                if number not in found or score > found[number][0]:
                    found[number] = (score, factor)
        return found, term_worth


def _methods(question: str) -> frozenset[str]:
    """Return the methods that the first telling word of a question suggests."""
    for word in question.lower().split()[:3]:
        if (methods := VERB_METHODS.get(word.strip("?.,!'\""))) is not None:
            return methods
    return frozenset()


def _weights(entry: IndexedTool, name: list[str], path: list[str]) -> dict[str, float]:
    """How much each word counts in an entry, all fields together."""
    weights: dict[str, float] = {}
    for field, words in (
        ("name", name),
        ("title", text_words(entry.title)),
        ("path", path),
        ("group", identifier_words(entry.group)),
        ("description", text_words(entry.description[:_DESCRIPTION])),
        ("arguments", [word for name in entry.arguments for word in identifier_words(name)]),
    ):
        weight, usual, discount = _FIELDS[field]
        each = weight / (1 - discount + discount * len(words) / usual)
        for word in words:
            weights[word] = weights.get(word, 0.0) + each
    return weights


# -- words: how text is cut into them, which forms are one, and which mean alike --------------------------------------
#
# The tables are English and general: the verbs of APIs, and nouns that people and API authors call differently. A new row
# is worth its place when it helps in many APIs; names that only one API uses do not belong here.

_IDENTIFIER: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TEXT: Final = re.compile(r"[a-z0-9]+")

STOP_WORDS: Final = frozenset(
    word
    for word in re.findall(
        "[a-z]+",
        """a about all also am an and any anybody anyone are as at be been before but by can could did do does for from had has
    have he her him his how i if in into is it its just left like me my no not of off on one or our ours own please she
    should so some somebody someone something than that the their them then there these they this those to up us use using
    want was we were what when where which who whose will with would you your""",
    )
)

# Words of a question → methods of operations that it is probably about.
VERB_METHODS: Final[dict[str, frozenset[str]]] = {
    word: frozenset(methods.split())
    for words, methods in {
        "what which who whose how show list get read find look see view fetch retrieve display check download search count": "GET",
        "create add make new open post put write start begin register invite send set upload attach publish sign enable": "POST PUT",
        "change update edit modify rename switch replace adjust move turn mark close": "PATCH PUT POST",
        "delete remove forget drop erase destroy kick detach revoke unlink undo": "DELETE",
        "stop cancel abort end halt": "POST DELETE PUT",
    }.items()
    for word in words.split()
}

# Words that mean alike. Each row is read in both directions.
_SYNONYMS: Final = (
    # verbs
    "get retrieve read fetch show view see display",
    "list all which browse enumerate",
    "create add make new insert register",
    "update change edit modify set adjust",
    "delete remove destroy drop erase forget clear",
    "cancel stop abort end halt terminate",
    "search find look query",
    "send mail email deliver",
    "run start trigger launch execute dispatch",
    "rerun again retry restart",
    "enable activate allow permit",
    "disable deactivate forbid prevent protect block",
    "lock freeze",
    "upload attach",
    "download export archive",
    "rename name title",
    "publish release",
    "approve accept confirm merge",
    "review look inspect check verify verification",
    "request ask",
    "copy duplicate clone fork",
    "undo revert reverse reversal",
    "unstar unlike",
    "compare diff difference changed between",
    "attach link connect save remember",
    "detach unlink disconnect forget",
    "invite invitation",
    "pause stop",
    "skip next",
    "remove kick expel throw",
    "share upload invite",
    "turn switch toggle power",
    "revert revoke undo unstar",
    "restart reboot",
    "add put",
    "assign assignee responsible",
    "follow follower subscribe watch",
    "reject refuse decline deny request",
    "schedule until later future",
    "hide private visibility public",
    "like star stargazer favorite favourite",
    "pair register add",
    "finish finalize complete close",
    "watch listen notify",
    # people and organisations
    "me authenticated current self own",
    "user person people account member profile",
    "member teammate colleague collaborator employee staff",
    "customer client buyer shopper",
    "seller merchant vendor",
    "organization organisation org company",
    "author writer contributor wrote",
    "owner belongs",
    # software
    "repository repo project",
    "issue bug ticket",
    "pull proposal propose",
    "comment reply answer",
    "label tag",
    "log output",
    "workflow build ci pipeline run job",
    "commit history",
    "secret password credential",
    "key ssh",
    "dependency library package",
    "vulnerability advisory alert dependabot",
    "hook webhook callback",
    "gist snippet",
    "reaction emoji thumbs",
    "content file document source text",
    "asset binary attachment",
    "notification inbox alert",
    "view visit traffic look",
    "limit quota remaining",
    "license licence",
    "version release",
    # money
    "invoice bill",
    "payment pay charge money",
    "refund back",
    "subscription subscribe monthly recurring plan",
    "price cost",
    "discount coupon promotion percent",
    "dispute chargeback",
    "payout bank withdraw earnings",
    "balance funds money owe",
    "tax vat",
    "card cards",
    "transfer payout",
    "capture authorised authorized",
    "portal page",
    "transaction booking",
    # machines and media
    "server machine vm virtual droplet instance",
    "firewall port traffic",
    "database postgres mysql",
    "domain dns address",
    "track song music",
    "album record",
    "artist band singer",
    "playlist mix",
    "player play playing music",
    "volume loud louder quiet",
    "message post text",
    "channel conversation room",
    "event happened happens",
    "recent recently last lately latest",
    "upcoming next preview",
    "picture image photo",
    "quote offer estimate",
    "goods ship delivery product item",
    "reader terminal device machine",
    "artifact result output",
    "leak secret exposed",
    "address url link web",
    "permission access right role",
    "place location address",
    "usage used consumption unit",
    "report statistic stats metric",
    "credit balance",
    "draft unfinished",
    "group team",
    "folder directory",
    "archive zip tarball",
    "quota rate limit",
    "plan schedule",
    "seen read",
)


def identifier_words(text: str) -> list[str]:
    """Return the words of a name or path in any spelling: `listUserRepos`, `/users/{user_id}`."""
    return [stem(word.lower()) for word in _IDENTIFIER.findall(text)]


def question_words(text: str) -> list[str]:
    """Return the words of a question, with phrases read as the word that they stand for."""
    text = _PHRASES.sub(lambda found: f" {_PHRASE[found[0]]} ", text.lower())
    words = [stem(word) for word in _TEXT.findall(text) if word not in STOP_WORDS]
    return [*words, SELF] if _MINE.search(text) else words


def text_words(text: str) -> list[str]:
    """Return the words of a sentence; those that say nothing are gone."""
    return [stem(word) for word in _TEXT.findall(text.lower()) if word not in STOP_WORDS]


SELF: Final = "me"
"""Stands for the pronouns of the first person: "my repositories" are found under `/me` and `/user`."""
_MINE: Final = re.compile(r"\b(?:my|mine|me|i)\b")

_PHRASE: Final = {
    "take back": "revert",
    "taken back": "revert",
    "give back": "refund",
    "money back": "refund",
    "pay back": "refund",
    "sign up": "create",
    "set up": "create",
    "log in": "login",
    "sign in": "login",
    "look for": "search",
    "turn off": "stop disable",
    "turn on": "start enable",
    "off and on": "restart",
    "get rid of": "delete",
    "throw away": "delete",
    "throw out": "remove",
    "hand over": "transfer",
    "find out": "get",
    "how many": "count",
    "not paid": "unpaid",
}
_PHRASES: Final = re.compile(r"\b(?:" + "|".join(_PHRASE) + r")\b")

_ENDINGS: Final = (
    ("ational", "ate"),
    ("ization", "ize"),
    ("isation", "ize"),
    ("ations", "ate"),
    ("ation", "ate"),
    ("ments", ""),
    ("ment", ""),
    ("ities", "ity"),
    ("ings", ""),
    ("ing", ""),
    ("ions", ""),
    ("ion", ""),
    ("ied", "y"),
    ("ies", "y"),
    ("sses", "ss"),
    ("ed", ""),
    ("es", ""),
    ("s", ""),
    ("e", ""),
)
_VOWEL: Final = re.compile(r"[aeiouy]")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return what forms of one English word have in common: `merge`, `merged`, `merging` and `merges` give `merg`."""
    if len(word) < 4 or word.endswith(("ss", "us", "is")):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending):
            root = word[: -len(ending)]
            if len(root) < 3 or not _VOWEL.search(root):
                continue
            word = root + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and (word[-1] not in "ls" or (word[-1] == "l" and len(word) > 5)):
        word = word[:-1]  # running, cancelled; but call, bill, pass
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for row in _SYNONYMS:
        stems = {stem(word) for word in row.split()}
        for one in stems:
            table.setdefault(one, set()).update(stems - {one})
    return {word: frozenset(others) for word, others in table.items()}


VERBS: Final = frozenset(stem(word) for word in VERB_METHODS)


@lru_cache(maxsize=1)
def _alike() -> dict[str, frozenset[str]]:
    return _table()


def synonyms(word: str) -> frozenset[str]:
    """Return the stems that mean about what this stem means."""
    return _alike().get(word, frozenset())
