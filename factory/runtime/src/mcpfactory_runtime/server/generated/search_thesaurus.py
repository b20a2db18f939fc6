"""Words that people and authors of APIs use for the same thing. English and general; data, and the one function that reads it.

A row is worth its place when it helps in many APIs: names that a single API uses do not belong here, the index learns them from
the API's own descriptions. `a b c` is read in every direction. `a b > c d` is read in one: who says a or b may mean c or d, which are
the terms of APIs; who says c does not mean a. `a b >> c d` is the same for what is farther: who says a or b may speak of something
for which APIs have c or d, and it counts less.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["METHODS", "PHRASES", "STOP_WORDS", "relations"]

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
"""Words that say nothing of what is meant, or say it as a part of a phrase."""

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
