"""Verbs of API documents, what each says that an operation does, and which of them are as often nouns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "ASKS",
    "DESTROYS",
    "ENUMERATES",
    "ISSUED",
    "MAY",
    "MAYBE",
    "NAMES_ONLY",
    "NOT_FIRST",
    "NOUNS_OF_ASKING",
    "NOUNS_TOO",
    "NOUN_HEADS",
    "READS",
    "SHOWS",
    "WRITES",
    "Said",
    "base_of",
    "phrasal",
    "said_by",
    "verbs",
]


def verbs(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


_ENDINGS: Final = (
    ("ies", "y"), ("es", ""), ("s", ""), ("ing", "e"), ("ting", "t"), ("ting", ""), ("ning", "n"), ("ing", ""),
)  # fmt: skip

READS: Final = verbs(
    "analyse analyze autocomplete calculate check compare compute count describe estimate explain fetch find get geocode"
    " head inspect list lookup match parse peek preview query read retrieve sanitise sanitize search suggest"
    " summarise summarize validate"
)
"""Verbs of asking: a POST may be read-only for them."""
SHOWS: Final = verbs(
    "access ask browse can collect contain convert decode detect determine diff discover display do does download enumerate evaluate exist exists"
    " export filter gather give has identify info iterate load monitor obtain poll print provide render report resolve respond return"
    " is scan see select show simulate stat status stream tail test track translate view watch"
)
"""Verbs of reading that are too weak to make a POST read-only."""
DESTROYS: Final = verbs(
    "abort bulkdelete clear delete deprovision deregister destroy discard drop empty erase evict expunge flush kill"
    " obliterate prune purge remove revoke rm rollback terminate truncate uninstall unregister wipe"
)
"""Verbs of taking away what exists."""
RESTORES: Final = verbs("restore recover undelete untrash unarchive reinstate")
WRITES: Final = verbs(
    "accept ack acknowledge acquire activate add adjust advertise allocate allow amend append apply approve assign associate"
    " attach authorise authorize ban bind bootstrap bundle buy cancel capture change charge checkin checkout claim complete"
    " configure confirm connect consume copy create deactivate decline demote deny deploy deprecate dequeue detach disable"
    " disassociate disconnect dismiss dispatch duplicate edit eject enable enqueue ensure establish exchange exclude exec execute expire"
    " extend fail finalise finalize finish force forward fulfil fulfill generate grant hide ignore import increment"
    " initialise initialize initiate inject insert install instantiate invalidate invite invoke join kick launch lease leave"
    " login logoff logon logout migrate minimize modify move mute negotiate notify optin optout onboard offboard override overwrite park"
    " passivate patch pause pay perform pop prepare promote provision publish purchase push put reactivate rearrange"
    " reassign reauthorize rebind reboot rebuild recalculate reconcile recreate redeem redeliver redeploy refresh release"
    " regenerate register reindex reject reload relocate rename renew reopen reorder repair replace replicate reprocess requeue"
    " rerequest rerun resend reserve reset resize restart resubmit resume retry revalidate revert rewrite rotate run save"
    " seed send set setup shrink signin signoff signout signup snooze spawn start stop store submit subscribe suspend switch"
    " sync synchronise synchronize tag toggle transition trash trigger unassign unattach unban unbind unblock unbookmark"
    " undeploy unpublish unfollow unhide unlink unlock unmute unpause unpin unset unshare unstar unsubscribe untag unwatch update"
    " upgrade upload upsert vote withdraw write zap"
)
"""Verbs that are hardly ever a noun at the beginning of a name or a sentence."""
MAYBE: Final = verbs(
    "answer archive attempt backup bid block book boost broadcast build call charge close comment commit control cut debit deposit credit"
    " delegate disburse draft drain encrypt decrypt escalate favorite feature flag follow format freeze fund gift hold"
    " increase issue label license like link lock log mail make mark merge message mirror mount open order pin play post process pull quarantine rate"
    " record redirect refund reply request review rollover schedule seal share sign skip snapshot split star swap test ticket touch"
    " receive transfer trade train transcribe unfreeze verify work"
)
"""Verbs that are as often nouns: they count where an article or pronoun follows, or where nothing else says what is done."""
NOUNS_TOO: Final = verbs(
    "allow bundle buy cancel capture change charge checkin checkout claim complete connect copy delete deploy edit exchange extend grant hide import"
    " increment install kick launch lease leave login logon migrate move notify park patch pause pay pop prepare publish purchase push"
    " put refresh reindex release repair reset resize resume rollback run save seed set setup sign signin signup start stop store submit switch sync"
    " tag toggle trash transition trigger update upgrade upload vote write"
)
"""Clear verbs that are in names of things, too: cancel policy, release notes, stop points, import jobs."""
NOUN_HEADS: Final = verbs(
    "activities activity attempts bill by candidates capabilities capability code codes config configuration configurations count counts data date"
    " dates default defaults details endpoint endpoints error errors event events failures fee fees field fields flow for form format from"
    " group groups hash hashes history id ids in info information instructions interval job jobs key keys limit limits link links"
    " list lists location locations log logs marker markers message messages metadata method methods mode notes notification"
    " notifications of on operation operations option options orders page pages params period plan plans policies policy price"
    " process progress protection queue rate rates reason reasons record records report reports request requests result results"
    " rule rules schedule schedules script scripts settings state states statistics stats status statuses step steps"
    " store stream streams summary task tasks template templates time times token tokens token type types uri url urls usage version versions via"
    " window windows"
)
"""What makes a noun of the verb before it: cancel policy, delete markers, updates of."""
NOT_FIRST: Final = verbs(
    "a admin all also an and api apis async asynchronously asynchronous bulk batch beta cli current experimental first helper"
    " internal mass me multi multiple my new or our please post public quickly service sync then to user users v1 v2 v3 v4"
)
"""Words before the verb of a name or a sentence."""
ISSUED: Final = verbs(
    "access challenge code codes login magic new next nonce otp pin session sessions signed ticket token tokens upload"
)
"""What a POST that “gets” or “returns” it has rather made."""
ASKS: Final = verbs("count fetch find get list lookup query retrieve search")
"""What a text has to begin with that makes a POST read-only where name and path have no verb."""
ENUMERATES: Final = verbs("count describe find list query search")
MAY: Final = verbs("allow enable let permit")
NAMES_ONLY: Final = verbs("describe fetch find get retrieve")
"""Verbs of asking that are no nouns: at the end of a name, too, they say what is done. Others may be a saved search or a wish list."""
NOUNS_OF_ASKING: Final = verbs("check count estimate head list lookup match preview query read search")
"""Verbs of asking that are nouns, too: `checkCreate` makes a check."""
_KNOWN: Final = READS | SHOWS | DESTROYS | RESTORES | WRITES | MAYBE
_FALSE_S: Final = frozenset({"is", "has", "does", "access", "process", "address"})
_PARTICLES: Final = verbs("in into out up off")


SaidKind = Literal["", "reads", "shows", "writes", "destroys", "restores"]


@dataclass(frozen=True, slots=True)
class Said:
    """The verb of one source: what it does, "" for a verb that says nothing; whether it could as well be a noun."""

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
    def clear(self) -> bool:
        """Whether it says enough to decide."""
        return self.kind not in {"", "shows"} and not self.weak


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


def base_of(word: str) -> str:
    """Return the base of a verb in the third person or as a gerund, where that is a verb that is known."""
    if word in _KNOWN:
        return word
    for ending, instead in _ENDINGS:
        stem = word.removesuffix(ending) + instead
        if word.endswith(ending) and word not in _FALSE_S and stem in _KNOWN:
            return stem
    return word
