"""The verbs of API documents, each once, by what it says that an operation does; and which of them are as often nouns.

One list for `effects`, which asks what an operation does, and for `naming`, which asks which words of a name are verbs.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ACTIONS",
    "ADDITIVE",
    "ADDS",
    "ASKS",
    "BARE",
    "CLEAR",
    "DESTROYS",
    "ISSUED",
    "MAYBE",
    "NOT_FIRST",
    "NOUN_HEADS",
    "READS",
    "SHOWS",
    "VERBS",
    "WRITES",
    "base_of",
    "verbs",
]


_ENDINGS: Final = (
    ("ies", "y"), ("es", ""), ("s", ""), ("ing", "e"), ("ting", "t"), ("ting", ""), ("ning", "n"), ("ing", ""),
)  # fmt: skip


def verbs(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def base_of(word: str, known: frozenset[str]) -> str:
    """Return the base of a verb in the third person or as a gerund if that is known, else the word."""
    if word in known:
        return word
    stems = (word.removesuffix(ending) + instead for ending, instead in _ENDINGS if word.endswith(ending))
    return next((stem for stem in stems if stem in known), word)


READS: Final = verbs(
    "analyse analyze autocomplete calculate check compare compute count describe estimate explain fetch find get geocode"
    " head inspect list lookup match parse peek preview query read retrieve sanitise sanitize search suggest"
    " summarise summarize validate"
)
"""Verbs of asking: a POST may be read-only for them."""
SHOWS: Final = verbs(
    "access ask browse can collect contain convert decode detect determine diff discover display do does download enumerate evaluate exist exists"
    " export filter gather give has identify info iterate load monitor obtain poll print provide render report resolve respond return"
    " is scan see select show simulate stat status stream tail test track translate view watch receive"
)
"""Verbs of reading that are too weak to make a POST read-only."""
DESTROYS: Final = verbs(
    "abort bulkdelete clear delete deprovision deregister destroy discard drop empty erase evict expunge flush kill"
    " obliterate prune purge remove revoke rm rollback terminate truncate uninstall unregister wipe"
)
"""Verbs of taking away what exists."""
ADDITIVE: Final = verbs("add append create insert")
"""Verbs after which all is there that was there before."""
ADDS: Final = verbs(
    "add append charge dequeue deposit enqueue increment pay pop redeliver refund requeue resend send toggle transfer"
)
"""Verbs of which a second call does more than the first: such a call is not idempotent, whatever its method."""
WRITES: Final = verbs(
    "accept ack acknowledge acquire activate add adjust advertise allocate allow amend append apply approve assign"
    " associate attach authorise authorize ban bind bootstrap bundle buy cancel capture change charge checkin"
    " checkout claim complete configure confirm connect consume copy create deactivate decline demote deny deploy"
    " deprecate dequeue detach disable disassociate disconnect dismiss dispatch duplicate edit eject enable enqueue"
    " ensure establish exchange exec execute expire extend fail finalise finalize finish force forward fulfil"
    " fulfill generate grant hide ignore import increment initialise initialize initiate inject insert install"
    " instantiate invalidate invite invoke join kick launch lease leave login logoff logon logout migrate minimize"
    " modify move mute negotiate notify offboard onboard optin optout override overwrite park passivate patch pause"
    " pay pop prepare promote provision publish purchase push put reactivate rearrange reassign reauthorize"
    " rebind reboot rebuild recalculate reconcile recover recreate redeem redeliver redeploy refresh regenerate"
    " register reindex reinstate reject release reload relocate rename renew reopen reorder repair replace replicate"
    " reprocess requeue rerequest rerun resend reserve reset resize restart restore resubmit resume retry revalidate"
    " revert rewrite rotate run save seed send set setup shrink signin signoff signout signup snooze spawn start"
    " stop store submit subscribe suspend switch sync synchronise synchronize tag toggle transition trash trigger"
    " unarchive unassign unattach unban unbind unblock unbookmark undelete undeploy unfollow unhide unlink unlock"
    " unmute unpause unpin unpublish unset unshare unstar unsubscribe untag untrash unwatch update upgrade upload"
    " upsert vote withdraw write zap mark"
)
"""Verbs that are hardly ever a noun at the beginning of a name or a sentence."""
MAYBE: Final = verbs(
    "answer archive attempt backup beep bid blink block book boost broadcast build call charge close comment commit control cut debit deposit credit"
    " delegate disburse draft drain encrypt decrypt escalate favorite feature flag follow format freeze fund gift hold"
    " increase issue label license like link lock log mail make merge message mirror mount open order pin play post process pull quarantine rate"
    " record redirect refund reply request review rollover schedule seal share sign skip snapshot split star swap test ticket touch"
    " ring vibrate transfer trade train transcribe unfreeze verify work"
)
"""Verbs that are as often nouns: they count where an article or pronoun follows, or where nothing else says what is done."""
NOUNS_TOO: Final = verbs(
    "allow bundle buy cancel capture change charge checkin checkout claim complete connect copy deploy edit"
    " exchange extend grant hide import increment install kick launch lease leave login logon migrate move notify"
    " park patch pause pay pop prepare publish purchase push put refresh reindex release repair reset resize resume"
    " rollback run save seed set setup sign signin signup start stop store submit switch sync tag toggle transition"
    " trash trigger update upgrade upload vote write mark"
)
"""Verbs of writing that are in names of things, too: cancel policy, release notes, stop points, import jobs."""
CLEAR: Final = (WRITES | DESTROYS) - NOUNS_TOO
"""Verbs of changing that are never nouns."""
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
    "challenge code codes login magic new next nonce otp pin session sessions signed ticket token tokens upload"
)
"""What a POST that “gets” or “returns” it has rather made."""
ASKS: Final = verbs("count fetch find get list lookup query retrieve search")
"""What a text has to begin with that makes a POST read-only where name and path have no verb."""
OTHERS: Final = verbs(
    "admit assume audit authenticate batch begin bulk classify clean clone compile continue debug decrease define"
    " deliver derive dislike dissociate draw emit encode end enroll enter exclude expand extract fill forget forgot"
    " fork handle include index infer ingest init keep lend look manage map meter opt options ping place populate"
    " prevent queue rank recognize recommend reduce reencrypt refer reimport relate remind repeat replay rescan"
    " resync retain retire retract reveal reverse rewind roll sample scale score sell serve settle ship shutdown"
    " solve sort stage succeed synthesize take trace transform try tweet unassociate undo unenroll unflag uninvite"
    " unlike unlist unmap unmark unsnooze unsuspend void wait wake warm withhold perform"
)
"""Verbs that say nothing of what is changed, or too little."""
_RATHER_NOUNS: Final = verbs(
    "access answer ask attempt bid boost broadcast bundle call can charge collect comment contain control credit"
    " debit demote deposit diff do does draft drain empty exists favorite feature fund gift has hold increase info is"
    " label lease license mail message minimize mirror mount onboard optin optout order park play pop rate rollover"
    " seal seed setup snapshot stat status tail ticket touch trade work"
)
"""Words that are no verbs in a name unless something else says so: `getRate`, `listOrders`."""
METHODS: Final = frozenset({"get", "put", "post", "delete", "patch", "head", "options", "trace", "query"})
BARE: Final = METHODS | frozenset(
    {"list", "create", "update", "read", "index", "show", "find", "add", "remove", "fetch", "search", "all", "destroy"}
    | {"store", "edit", "save", "set", "new", "replace", "retrieve", "upsert", "do", "run", "execute", "call"}
)
"""What says no more than a method, when it is the whole operationId."""

ACTIONS: Final = verbs(
    "abort accept acknowledge activate add apply approve archive assign attach authorize ban batch block cancel"
    " capture check claim clear clone close complete confirm convert copy deactivate decline deliver detach disable"
    " dislike dismiss dispatch download duplicate enable evaluate execute expire export fail finalize follow fork"
    " freeze fulfill generate import increment install invite invoke join leave like link lock login logout mark"
    " merge migrate move mute notify open pause pay pin ping preview process promote publish purge query rebuild"
    " receive redeliver refresh refund regenerate register reject release reload remove rename renew reopen reorder"
    " replace replay report request rerun resend reset resolve restart restore resume retry return reveal revert"
    " revoke rotate run save schedule search send set share ship sign simulate snooze split star start stop submit"
    " subscribe succeed suspend suspend sync terminate test toggle transfer translate trigger unarchive unassign"
    " unban unblock undo unfollow unfreeze uninstall unlike unlink unlock unmute unpin unpublish unshare unstar"
    " unsubscribe upgrade upload validate verify void vote withdraw"
)
"""What a last segment of a path says when it is done to what stands before it: `POST /books/{id}/publish`."""
VERBS: Final = (READS | SHOWS | DESTROYS | WRITES | MAYBE | OTHERS | METHODS) - _RATHER_NOUNS
"""The verbs of names."""
