"""Words of tools and questions: tokens, stems, synonyms.

This module covers questions in general, independent of the available tools.

Add a row only if it helps in many APIs. The index learns names that a single API uses from the API's own
descriptions. The notation of a row:

- `a b c`: each word may mean any other.
- `a b > c d`: a or b in a question may mean the API terms c or d, but c does not mean a.
- `a b >> c d`: like `>` for more distant terms, with a lower weight.

English words lose their endings. Words of other languages stay unchanged, and text in a script without spaces is
cut into pairs of characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

STOP_WORDS: Final = frozenset(
    re.findall(
        "[a-z]+",
        """a about again all already also am an and any anybody anymore anyone anything are as at be because been before being but by can cannot
    certain could did do does doing don done each else every everybody everyone everything for from had has have having he her here him his how i
    if in into is isn it its itself just kind kinds left let like lot made main make makes making many may me might mine more most
    much must my need needs no nobody not now of off ok on one ones only or other others our ours out own per please possible really
    s same see she should show so some somebody someone something somewhere still such t tell than thank thanks that the their them
    then there these they thing things this those through to together too try under up upon us use used using ve very via want wants
    was way we were what when where which while who whom whose why will with within without would you your yours""",
    )
)
"""Words without meaning for a search, or with meaning only as a part of a phrase."""

METHODS: Final[dict[str, frozenset[str]]] = {
    word: frozenset(methods.split())
    for words, methods in {
        """what which who whose whom how where when why is are does did has have was were can show list get read find look see view
        fetch retrieve display check download search count give tell know describe browse query lookup inspect print""": "GET",
        """create add make new open post put write start begin register invite send set upload attach publish sign enable buy order book
        reserve rent launch run trigger build generate issue give save keep store remember submit share apply assign grant allow invite
        connect link join subscribe follow star pin request ask schedule report pay propose charge refund transfer call dial ring
        mail email notify alert warn log record copy clone fork duplicate import try test comment reply react answer vote deploy merge
        accept approve confirm submit fill authorize""": "POST PUT",
        """change update edit modify rename switch replace adjust move turn mark close set reset configure toggle lock unlock archive reject
        decline refuse block ban forbid prevent limit protect convert upgrade downgrade restart reboot play skip
        enable disable pause resume extend scale resize correct fix restore hide mute""": "PATCH PUT POST",
        """delete remove forget drop erase destroy kick detach revoke unlink undo throw wipe discard unfollow unsubscribe unstar
        unpin leave clear unset unassign unblock unban unmute clean empty prune purge flush""": "DELETE",
        "stop cancel abort end halt terminate kill disable": "POST DELETE PUT",
    }.items()
    for word in words.split()
}
"""Words of a question → methods of the operations that it is probably about."""

PHRASES: Final[dict[str, str]] = {
    said: meant
    for line in """
    get rid of|throw away|do away with|wipe out > delete
    throw out|kick out|take out|take off|cut off > remove
    take back|taken back|call back > revert delete
    give back|money back|pay back|paid back > refund
    get back|bring back|put back|gets back > restore
    go back to the|go back|goes back|the one before > previous back
    roll back|rolled back|rolling back > rollback revert
    back up|backs up|backing up > backup snapshot
    sign up|set up|setting up|spin up > create
    sign in|log in|logged in|logged on > login current authenticated
    sign out|log out|sign off > logout session
    look for|looking for|hunt for > search
    look up|find out > get search
    look over|looked over|go over|look at > review
    look after > manage
    turn off|switch off|shut off > stop disable
    turn on|switch on > start enable
    shut down|power off|power down > stop shutdown terminate
    power on|boot up|bring up|start up > start
    off and on > restart
    hang up|hung up > end call
    hand over|pass on|hand to > assign transfer
    write down|note down|jot down > create log
    fill in|fill out > submit
    give up > close
    carry on|go on|keep going > resume
    keep out|lock out|shut out|blacklist|black list|block list|ban > block list
    white list|allow list > allow list
    step down|walk out of > leave
    over and over|in a loop|on repeat > repeat
    by hand > manual dispatch
    at once > bulk
    for good|once and for all|for ever|forever > permanently
    to the world|to everyone|to everybody|to anyone|to the public > public
    not paid|hasn t paid|haven t paid|didn t pay > unpaid
    how many|number of > count
    how much money|money left > balance
    how much > amount
    who am i|about me|about myself > current user me
    who are you > info
    who can|who may|allowed to|right to|rights to|able to > permission access
    has access|have access|give access|gives access|let in > access permission
    as text|in text|in words|word for word > text transcription
    over time|what happened to|what happened|what changed|went on|goes on|going on > history event activity
    what s new|lately|catch up|catch up on|missed > recent history
    next step|do next > transition next
    due date > due
    every day|every night|every hour|every week|each night|each day > schedule cron recurring
    every month|each month > recurring subscription
    once a day|once a week|once a month > schedule recurring
    tomorrow|next week|later on > schedule
    on vacation|on holiday|out of office > status away
    do not disturb|leave me alone > snooze dnd
    go wrong|went wrong > error failure
    come up|came up > start status
    hooked up to|plugged into > attached
    phone number|telephone number > phone number
    mail address|e mail address|e mail > email
    web address|web link > url link
    zip code|post code|postal code > postal address
    data base|data bases > database
    time zone > timezone
    data center|data centre > region datacenter
    real time > stream realtime
    two factor|2fa|second factor > mfa factor
    single sign on > sso saml
    merge request|merge requests > pull request
    to do|to dos|todo|todos > task
    credit card|bank card|debit card > card
    voice mail|voice message > voicemail recording
    short message|short messages > sms message
    """.strip().splitlines()
    for said, meant in [(said.strip(), line.partition(">")[2].strip()) for said in line.partition(">")[0].split("|")]
}
"""Words that mean something else together than each alone."""


def relations(normal: Callable[[str], str]) -> Iterator[tuple[str, str, bool]]:
    """Yield who may mean what: (word, other, whether that is far), both as `normal` writes them."""
    for row in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines():
        said, arrow, meant = row.partition(">")
        words = [normal(word) for word in said.split()]
        others = [normal(word) for word in meant.lstrip(">").split()] if arrow else words
        far = meant.startswith(">")
        yield from ((word, other, far) for word in words for other in others if word != other)


SELF: Final = "me"
"""Stands for the pronouns of the first person: "my repositories" are found under `/me` and `/user`."""

_IDENTIFIER: Final = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_TEXT: Final = re.compile(r"[^\W\d_]+|\d+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LONGEST: Final = 40  # letters; a longer string is not a word

_IRREGULAR: Final = {
    form: word
    for line in """
    index: indices indexes
    person: people persons
    child: children
    man: men
    woman: women
    run: ran
    send: sent
    pay: paid
    sell: sold
    buy: bought
    make: made
    get: got gotten
    write: wrote written
    tell: told
    say: said
    give: gave given
    take: took taken
    see: saw seen
    hold: held
    keep: kept
    spend: spent
    build: built
    go: went gone
    come: came
    steal: stole stolen
    choose: chose chosen
    lose: lost
    find: found
    leave: left
    begin: began begun
    hear: heard
    speak: spoke spoken
    throw: threw thrown
    freeze: froze frozen
    forget: forgot forgotten
    hide: hid hidden
    choice: choices
    analysis: analyses
    datum: data
    medium: media
    hang: hung
    bring: brought
    delete: deletion deletions
    describe: description
    receive: reception
    subscribe: subscription subscriptions
    """.strip().splitlines()
    for word, _, forms in [line.strip().partition(": ")]
    for form in forms.split()
}
_WHOLE: Final = frozenset(
    re.findall(
        "[a-z]+",
        """alias atlas bias canvas gas lens news series species listing booking setting rating tracking recording always https kubernetes redis ios speed feed seed need
    region version station union million opinion comment moment segment element king thing string spring pants texas""",
    )
)
"""Words whose last letters only look like an ending."""

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


def cut(text: str) -> list[str]:
    """Return the words of a text in lower case, otherwise unchanged."""
    return _TEXT.findall(text.lower())


def identifier_words(text: str) -> list[str]:
    """Return the words of a name or path in any spelling: `listUserRepos`, `/users/{user_id}`."""
    return [form for word in _IDENTIFIER.findall(text) for form in forms(word.lower())]


def text_words(text: str) -> list[str]:
    """Return the words of a sentence; those that say nothing are gone."""
    return [form for word in cut(text) if word not in STOP_WORDS for form in forms(word)]


@lru_cache(maxsize=16_384)
def forms(word: str) -> tuple[str, ...]:
    """Return a word's search forms: its stem, or pairs of characters if its script has no spaces."""
    if word.isascii() or not _UNSPACED.search(word):
        return (stem(word),)
    return tuple(word[at : at + 2] for at in range(max(1, min(len(word), _LONGEST) - 1)))


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return the stem of an English word: `merge`, `merged`, `merging` and `merges` give `merg`."""
    word = _IRREGULAR.get(word[:_LONGEST], word[:_LONGEST])
    if len(word) < 4 or word in _WHOLE or word.endswith(("ss", "us", "is")) or not word.isascii():
        return word
    if word.endswith("es") and word[:-2] in _WHOLE:
        return word[:-2]
    if word.endswith("s") and word[:-1] in _WHOLE:
        return word[:-1]
    for ending, instead in _ENDINGS:
        if word.endswith(ending):
            root = word[: -len(ending)]
            if len(root) < (4 if ending == "ment" and root != "pay" else 3) or not _VOWEL.search(root):
                continue
            word = root + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and (word[-1] not in "ls" or (word[-1] == "l" and len(word) > 5)):
        word = word[:-1]  # running, cancelled; but call, bill, pass
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_MINE: Final = re.compile(r"\b(?:my|mine|myself|i am|i have|i get|am i)\b")
_PHRASE: Final = re.compile(r"\b(?:" + "|".join(sorted(map(re.escape, PHRASES), key=len, reverse=True)) + r")\b")
_OPTION: Final = "\1"  # separates the possible words of a phrase, and precedes the first
_LEAD: Final = re.compile(
    r"^(?:(?:how (?:can|do|to|could|should|would)(?: i)?|how i can|i (?:want|need|would like|have|like|wish)(?: to)?|please|can you|could you"
    r"|help me|let me|to|that|must) )+"
)
_STATEMENT: Final = re.compile(
    r"(?:an?|the|i|my|our|we|he|she|they|it|this|that|some(?:body|one|thing)|nobody|people|two|one|some) "
    r"(?!want to |need to |would like to |wish to |have to )"
    r"(?:(?!(?:that|which|who|whose|where|when) )\w+ ){0,5}?(?:is|isn|are|aren|was|wasn|were|has|hasn|have|had|does|doesn|don|did|didn|can|cannot|must|should|could|may|will|won|keeps?|needs?"
    r"|says?|went|left|lost|stopped|broke|wants?)\b"
)
"""Statements without a verb at the beginning that names the wanted action: `the server key was leaked`."""

_CLAUSE: Final = re.compile(r"[,;:.!?]\s+")

_PARTED: Final = tuple(
    (re.compile(rf"\b{pattern}\b"), instead)
    for pattern, instead in (
        (r"(?:take|throw|get|put) ((?:\w+ ){1,3})(?:out of|off of|off|out)", r"remove \1from"),
        (r"kick ((?:\w+ ){1,3})(?:out of|off of|off|out)", r"kick \1from"),
        (r"bring ((?:\w+ ){1,4})into", r"add \1to"),
        (r"(?:turn|switch|power|shut) ((?:\w+ ){1,4})(?:off|down)", r"disable \1"),
        (r"(?:turn|switch|power) ((?:\w+ ){1,4})on", r"enable \1"),
        (r"(?:bring|get|put|go) ((?:\w+ ){1,4})back", r"restore \1"),
        (r"give ((?:\w+ ){1,4})back", r"refund \1"),
        (r"take ((?:\w+ ){1,3})back", r"revert \1"),
        (r"roll ((?:\w+ ){1,3})back", r"rollback \1"),
        (r"hand ((?:\w+ ){1,3})over", r"assign \1"),
        (r"write ((?:\w+ ){1,3})down", r"create \1"),
        (r"look ((?:\w+ ){1,3})up", r"get \1"),
        (
            r"(?:tell|inform|notify|warn|alert|message|let) (?:\w+ ){1,4}(?:know )?(?:when|whenever|if|as soon as)",
            "create alert notification webhook",
        ),
        (r"(?:have|get) (?:\w+ ){1,4}called (?:when|whenever|if|as soon as)", "create alert notification webhook"),
        (r"(?:be|get) (?:told|informed|notified|warned|alerted|called)", "create alert notification webhook"),
    )
)
"""Verbs in separate parts: `take songs out of a playlist` means removing."""

_ASIDES: Final = {
    word: distance
    for distance, words in (
        (1, "of in on from to with by at into"),
        (2, "for so before after until because that which who but without when if than instead"),
    )
    for word in words.split()
}
"""Words that a part of the question follows which is less of its point: 1 for what belongs to it, 2 for reasons and conditions."""

_ASKER: Final = 3
_ASKERS: Final = frozenset({"who", "whose", "whom"})
_FIRST_WORDS: Final = 3  # the verb must be one of these


@dataclass(frozen=True, slots=True)
class Term:
    """One subject of a question.

    Attributes:
        options: possible stems; the first is the word itself unless a phrase replaced it.
        distance: distance from the point: 0 in the main clause, 1 after a preposition, 2 in a reason or condition, 3
            for a "who".
        leads: True for a first term that is a verb.
    """

    options: tuple[str, ...]
    distance: int
    leads: bool


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A parsed search question.

    Attributes:
        terms: its subjects.
        methods: methods of the operations that it suggests; empty if no verb suggests any.
        many: True if it asks for several things rather than for one.
    """

    terms: tuple[Term, ...]
    methods: frozenset[str]
    many: bool


def read_question(text: str) -> SearchQuestion:
    """Parse a search question."""
    said = " ".join(cut(text))
    verbs = _verbs(text, said)
    terms = _terms(_joined(said), mine=_MINE.search(said) is not None)
    stems = {option for term in terms for option in term.options}
    many = " all " in f" {said} " or any(_is_plural(word) and stem(word) in stems for word in said.split())
    if any(word in _ASKERS for word in said.split()[:2]):
        terms = (*terms, Term((stem("user"), stem("member")), _ASKER, leads=False))
    reads = said.partition(" ")[0] in _ASKERS
    return SearchQuestion(terms, METHODS["list"] if reads else _methods(verbs), many)


def methods_of(word: str) -> frozenset[str]:
    """Return the methods that a stem suggests where it is a verb."""
    return _VERB_METHODS.get(word, frozenset())


def synonyms(word: str) -> frozenset[str]:
    """Return the stems that may be meant by this one."""
    return _tables()[0].get(word, frozenset())


def associations(word: str) -> frozenset[str]:
    """Return the stems of what may be spoken of by this one, though they do not mean the same."""
    return _tables()[1].get(word, frozenset())


def _joined(said: str) -> str:
    for pattern, instead in _PARTED:
        said = pattern.sub(instead, said)
    return said


def _options(said: str) -> str:
    """Replace each phrase of a question with one word that lists its possible meanings."""
    return _PHRASE.sub(lambda found: _OPTION + PHRASES[found[0]].replace(" ", _OPTION), said)


def _terms(said: str, *, mine: bool) -> tuple[Term, ...]:
    distances: dict[tuple[str, ...], int] = {}
    distance = 0
    for word in _options(said).split(" "):
        distance = max(distance, _ASIDES.get(word, 0))
        if word.startswith(_OPTION):
            distances.setdefault(tuple(stem(option) for option in word[1:].split(_OPTION)), distance)
        elif word not in STOP_WORDS:
            for form in forms(word):
                distances.setdefault((form,), distance)
    if mine:
        distances.setdefault((SELF,), 0)
    return tuple(
        Term(options, far, leads=not number and options[0] in VERBS)
        for number, (options, far) in enumerate(distances.items())
        if options != ("",)
    )


def _methods(words: list[str]) -> frozenset[str]:
    """Return the methods that the first significant word suggests; a plural at the beginning suggests a list."""
    for word in words[:_FIRST_WORDS]:
        options = [METHODS[option] for option in word.strip(_OPTION).split(_OPTION) if option in METHODS]
        if options:
            return frozenset().union(*options)
        if _is_plural(word):
            return METHODS["list"]
    return frozenset()


def _verbs(text: str, said: str) -> list[str]:
    """Return the words whose verb names the wanted action.

    Of a statement ("my card was stolen, block it"), return the words of the clause after it.
    """
    wish = said
    if _STATEMENT.match(said):
        wish = " ".join(cut(_CLAUSE.split(text.strip())[-1]))
        if wish == said or _STATEMENT.match(wish):
            return []
    return _options(_joined(_LEAD.sub("", wish + " "))).split()


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))


# Of two words with one stem, the first counts.
_VERB_METHODS: Final = {stem(word): methods for word, methods in reversed(METHODS.items())}
VERBS: Final = frozenset(_VERB_METHODS)


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Return near and distant related words for each stem."""
    tables: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
    for word, other, far in relations(stem):
        tables[far].setdefault(word, set()).add(other)
    near, far_off = ({word: frozenset(others) for word, others in table.items()} for table in tables)
    return near, far_off
