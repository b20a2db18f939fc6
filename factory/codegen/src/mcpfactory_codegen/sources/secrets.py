"""Which names are those of credentials: what stands there is never written into a server, nor into its copy of a document."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["REDACTED", "is_credential", "is_secret", "without_user"]

REDACTED: Final = "REDACTED"
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
_USER: Final = re.compile(r"(?<=://)[^/@\s]*@")
_PUBLIC: Final = frozenset(
    {"next_page_token", "page_token", "token_type", "continuation_token", "sort_key", "primary_key"}
)


def is_secret(name: str) -> bool:
    """Whether a header, cookie, parameter or member of this name holds a credential, or something as private."""
    plain = _WORDS.sub("_", name).replace("-", "_").lower()
    if plain.endswith(tuple(_PUBLIC)):
        return False
    return _SECRET.search(plain) is not None or _COMPOUND.search(plain) is not None


_CREDENTIALS: Final = frozenset(
    {
        "key", "apikey", "token", "accesstoken", "authtoken", "oauthtoken", "auth", "appid", "appkey", "applicationkey", "clientsecret",
        "subscriptionkey", "xapikey", "sessionid", "sig", "signature", "accesskey",
    }
)  # fmt: skip


def is_credential(place: str, name: str) -> bool:
    """Whether a header, cookie or query parameter of this name is what the API knows its caller by, and no data of the call."""
    if place == "query":
        return re.sub(r"[^a-z]", "", name.lower()) in _CREDENTIALS
    return is_secret(name)


def without_user(url: str) -> str:
    """Return a URL without the user and password in it."""
    return _USER.sub("", url)
