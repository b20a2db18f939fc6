"""The names of credentials: one table for parameters of documents, for collections, and for what is never written down.

`RULES` say which parameters the API knows its caller by. `is_secret` is wider: what is as private, a card number or a session, is
kept out of servers and of copies of documents, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["PAIRS", "PLACES", "RULES", "NameRule", "is_credential", "is_secret", "squashed"]


@dataclass(frozen=True, slots=True)
class NameRule:
    """`name` is matched against the squashed name (`X-Api-Key` is `xapikey`), `said` is looked for in the description.

    `common`: it is enough that nearly every operation has the parameter: "unsaid" where nothing describes it, "needed" where
    nothing less will do. `token`: what a bearer or OAuth scheme of the operation sends already.
    Not `described`: it counts in collections only: in a document it may be what an operation is about.
    """

    name: str
    places: Collection[str]
    said: str = ""
    common: Literal["", "unsaid", "needed"] = ""
    token: bool = False
    described: bool = True


PLACES: Final = ("query", "header", "cookie")
_KEY_WORDS: Final = r"\b(api|app|application|developer|client|consumer|access|subscription|secret|your|license)[ _-]?key\b|\bkey\b.{0,40}\b(authenticat|authoriz)"
_BEARER_WORDS: Final = (
    r"\b(access|auth\w*|api|bearer|oauth\S*|security|jwt|session|user|your|personal)[ _-]?tokens?\b"
    r"|\btoken\b.{0,40}\b(authenticat|authoriz|from a user)|\boauth\b|\bbearer\b"
)
RULES: Final = (
    NameRule(r"\w*apikey", ("header",)),
    NameRule(r"(api|rapidapi|xapi)key", PLACES),
    NameRule(r"\w*subscriptionkey", ("header",)),
    NameRule(r"subscriptionkey", PLACES),
    NameRule(r"apitoken|apisecret|xapitoken|xapisecret", PLACES),
    NameRule(r"(x|oauth|auth|user)?(accesstoken|oauthtoken|authtoken)|oauth2token", PLACES, token=True),
    NameRule(
        r"token|xtoken|authtoken|jwt|auth|authentication|authenticationtoken",
        PLACES,
        _BEARER_WORDS,
        common="unsaid",
        token=True,
    ),
    NameRule(
        r"\w*(token|authentication|sdkkey)", ("header",), r"\b(authentication|access|api) (token|key)\b|\bsdk key\b"
    ),
    NameRule(
        r"key|appkey|applicationkey|accesskey|developerkey|devkey|userkey|secretkey|licensekey",
        PLACES,
        _KEY_WORDS,
        common="unsaid",
    ),
    NameRule(r"(?!.*idempot)\w*(key|token|secret|authentication)", ("header",), common="needed"),
    NameRule(
        r"appid", PLACES, r"\bapi[ _-]?key|\bapp(lication)?[ _-]?id\b.{0,30}\b(authenticat|key)|\byour\b.{0,20}\bkey"
    ),
    NameRule(r"clientsecret|sessionid|sig|signature", PLACES, described=False),
)
PAIRS: Final = (("appid", "appkey"), ("accesskey", "secretkey"), ("apiaccesskeyid", "apisecretaccesskey"))
"""Names that are credentials where an operation has both."""
_SECRET: Final = re.compile(
    r"(^|[_.-])(auth|authorization|authentication|credentials?|pass(word|wd|code|phrase)?|pwd|secret|token|jwt|sid|session|csrf|xsrf|nonce|otp|pin|cvv|cvc"
    r"|ssn|api[_-]?key|app[_-]?key|app[_-]?id|access[_-]?key|private[_-]?key|subscription[_-]?key|client[_-]?secret|key|appid|apikey|signature|sig|hmac|cookies?"
    r"|card[_-]?number|(credit|debit)[_-]?card|iban|saml\w*|code[_-]verifier|assertion|x[_-]amz[_-]\w+)($|[_.-])",
    re.IGNORECASE,
)
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_COMPOUND: Final = re.compile(
    r"password|passwd|secret|token|apikey|api_key|authorization|sessionid|credential|privatekey", re.IGNORECASE
)
_PUBLIC: Final = frozenset(
    {"next_page_token", "page_token", "token_type", "continuation_token", "sort_key", "primary_key"}
)


def is_secret(name: str) -> bool:
    """Whether a header, cookie, parameter or member of this name holds a credential, or something as private."""
    plain = _WORDS.sub("_", name).replace("-", "_").lower()
    if plain.endswith(tuple(_PUBLIC)):
        return False
    return _SECRET.search(plain) is not None or _COMPOUND.search(plain) is not None


def squashed(name: str) -> str:
    """Return a name without what its spelling adds: `X-Api-Key` is `xapikey`."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def is_credential(place: str, name: str) -> bool:
    """Whether a header, cookie or query parameter of this name is what the API knows its caller by, and no data of the call."""
    if place == "query":
        return any(place in rule.places and re.fullmatch(rule.name, squashed(name)) for rule in RULES)
    return is_secret(name)
