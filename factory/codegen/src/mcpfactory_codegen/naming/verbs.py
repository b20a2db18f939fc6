"""Verbs of operationIds and summaries: which words are verbs, and which verbs mean the same."""

from __future__ import annotations

import re
from typing import Final

from mcpfactory_codegen.text import words

__all__ = ["ACTIONS", "BARE", "METHODS", "READING", "VERBS", "kind", "summary_verb"]


METHODS: Final = frozenset({"get", "put", "post", "delete", "patch", "head", "options", "trace", "query"})
BARE: Final = METHODS | frozenset(
    {"list", "create", "update", "read", "index", "show", "find", "add", "remove", "fetch", "search", "all", "destroy"}
    | {"store", "edit", "save", "set", "new", "replace", "retrieve", "upsert", "do", "run", "execute", "call"}
)
"""What says no more than a method, when it is the whole operationId."""

_ACTION_WORDS: Final = """
    abort accept acknowledge activate add apply approve archive assign attach authorize ban batch block cancel capture check
    claim clear deliver dislike evaluate fulfill like regenerate ship succeed suspend terminate unlike vote
    clone close complete confirm convert copy deactivate decline detach disable dismiss dispatch download duplicate enable
    execute expire export fail finalize follow fork freeze generate import increment install invite invoke join leave link
    lock login logout mark merge migrate move mute notify open pause pay pin ping preview process promote publish purge
    query rebuild receive redeliver refresh refund register reject release reload remove rename renew reopen reorder replace
    replay report request rerun resend reset resolve restart restore resume retry return reveal revert revoke rotate run
    save schedule search send set share sign simulate snooze split star start stop submit subscribe suspend sync test
    toggle transfer translate trigger unarchive unassign unban unblock undo unfollow unfreeze uninstall unlink unlock unmute
    unpin unpublish unshare unstar unsubscribe upgrade upload validate verify void withdraw
"""
ACTIONS: Final = frozenset(_ACTION_WORDS.split())
"""What a last segment of a path says when it is done to what stands before it: `POST /books/{id}/publish`."""

READING: Final = frozenset({"search", "export", "download", "query", "preview", "validate", "verify", "compare"})
"""Actions that a GET may be."""

_MORE_WORDS: Final = """
    abort acknowledge acquire adjust admit advertise allocate allow amend analyze append assume audit authenticate backup
    begin bind book browse build buy bulk calculate change classify clean commit compare compile configure connect
    consume continue count create cut debug decode decrease decrypt define delete deliver deploy deprecate deregister derive
    describe destroy detect determine disassociate disconnect discover display dissociate associate draw drop edit emit encode
    encrypt end enroll ensure enter enumerate erase establish estimate evaluate evict exchange exclude exist expand explain
    extend extract fetch fill filter find finish flag flush force forget forgot format forward fulfill gather get give grant
    handle hide identify ignore include index infer ingest init initialize initiate inject insert inspect issue iterate keep
    kill launch lend like list load log look lookup make manage map match meter modify monitor obtain opt override
    parse patch peek perform place poll populate post prepare prevent print provide provision pull push put queue rank read
    reassign reboot recalculate recognize recommend reconcile record recover redeem redirect reduce reencrypt refer regenerate
    reimport reindex release relate remind render reply repeat repair rescan resize respond resync retain retire retrieve
    retract reverse review rewind rollback roll sample scale scan score see select sell serve settle ship show shutdown skip
    solve sort stage store stream suggest summarize swap switch synchronize synthesize tag take terminate track train
    transform transcribe transition try tweet unassociate unbind undelete undeploy unenroll unflag uninvite unlist unmap
    unmark unregister unset unsnooze unsuspend untag update upsert view vote wait wake warm watch withhold wipe write
"""
VERBS: Final = ACTIONS | METHODS | frozenset(_MORE_WORDS.split())

_KINDS: Final = {
    "read": "check count describe display download export fetch find get index list load look lookup obtain preview query read "
    "retrieve return search see show view browse compare head",
    "create": "add create insert make new post register store submit upsert book place open issue",
    "update": "adjust amend change edit modify patch put replace save set update upsert configure alter",
    "delete": "clear delete destroy discard drop erase forget purge remove unset wipe",
}
_KIND_OF: Final = {verb: name for name, verbs in _KINDS.items() for verb in verbs.split()}
# Verbs that are hardly ever a noun at the beginning of a summary; the others need an article or the like behind them.
_CERTAIN_WORDS: Final = """
    add adjust amend approve archive assign authorize calculate cancel choose compute configure confirm convert create
    deactivate delete deliver describe destroy detect disable discard edit enable execute fetch find generate get import
    insert invite list modify obtain perform provide publish purge register reject remove rename replace resend restore
    retrieve return revoke rotate save send set start stop submit subscribe suspend terminate unsubscribe update upsert
    validate verify
"""
_CERTAIN: Final = frozenset(_CERTAIN_WORDS.split())
_POINTING: Final = "a an the all any your my our their its this these one some new existing multiple several single specific current for"
_POINTERS: Final = frozenset(_POINTING.split())
_NOUN_BEFORE: Final = frozenset(
    {
        "details",
        "detail",
        "history",
        "id",
        "info",
        "information",
        "list",
        "name",
        "of",
        "request",
        "result",
        "results",
        "status",
    }
)
"""Words behind a verb that make a noun of it: `Upload status`."""
_ADVERBS: Final = frozenset({"bulk", "batch", "mass", "gracefully"})
_NORMAL: Final = {
    "retrieve": "get", "return": "get", "fetch": "get", "show": "get", "obtain": "get", "display": "get", "see": "get",
    "read": "get", "load": "get", "provide": "get", "view": "get", "look": "get", "describe": "get", "modify": "update",
    "edit": "update", "change": "update", "amend": "update", "destroy": "delete", "erase": "delete",
}  # fmt: skip
_WRITTEN: Final = re.compile(r"^(\[[^\]]*\]|\([^)]*\)|[\W\d_])+")


def kind(verb: str) -> str:
    """Return what a verb does to a resource: read, create, update, delete; other verbs are a kind of their own."""
    return _KIND_OF.get(verb, verb)


def summary_verb(summary: str, *, reading: bool) -> tuple[str, ...]:
    """Return the verbs that a summary begins with, in their plain forms: ("create", "update") of "Creates or updates a book".

    () when its first word is no verb, or may be a noun: "Request details", and for an operation that is `reading`
    "Upload file" or "Request the time".
    """
    said = words(_WRITTEN.sub("", summary[:200].replace("'", "")))
    while said and (said[0] in _ADVERBS or said[0].endswith("ly")) and len(said) > 1 and said[0] != "reply":
        said = said[1:]
    verb = _plain(said[0]) if said else ""
    if not verb:
        return ()
    if len(said) > 2 and said[1] in {"or", "and"} and (other := _plain(said[2])):
        return _NORMAL.get(verb, verb), _NORMAL.get(other, other)
    inflected = verb != said[0]
    if reading and verb == "request":
        return ()
    pointed = len(said) > 1 and said[1] in _POINTERS
    done = not reading and verb in ACTIONS and len(said) > 1 and said[1] not in _NOUN_BEFORE
    if not (inflected or verb in _CERTAIN or pointed or done):
        return ()
    if verb == "list" and said[1:2] == ("of",):
        return ("list",)
    return (_NORMAL.get(verb, verb),)


def _plain(word: str) -> str:
    """Return the verb that a word is a form of, or ""."""
    endings = (("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("ing", ""), ("ing", "e"))
    forms = (word.removesuffix(end) + put for end, put in endings if word.endswith(end))
    return next((form for form in forms if form in VERBS), "")
