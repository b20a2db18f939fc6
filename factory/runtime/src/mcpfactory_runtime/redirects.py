"""Redirects: one rule for calls of APIs, for the MCP client, for `validate` and for fetching documents (RFC 9110 §15.4). Pure.

A redirect is followed where it leads to the same origin, for what it means there:

status          method           sent there
301, 302        a safe one       the same
303             any              GET (HEAD stays HEAD), without body
307, 308        any              the same, with its body

`http` to `https` of the same host, both at the scheme's own port, is the same origin: what travelled in the open goes on encrypted. The
way back is none. What leads to another origin is not followed, for credentials would go along, and the other host is the answer's choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

from mcpfactory_runtime.addresses import split_web_url

__all__ = ["MAX_REDIRECTS", "Redirect", "Redirects", "is_same_origin", "redirect_of"]

MAX_REDIRECTS: Final = 5
_PORTS: Final = {"http": 80, "https": 443}
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "QUERY"})
_KEPT: Final = "%/:?#[]@!$&'()*+,;=~"  # the rest of a Location is encoded
_FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})

Refusal = Literal["", "target", "origin", "downgrade", "method", "circle"]
"""Why a redirect is not followed: it names no http address; it leads to another origin; it leads from https to http; its status does
not say that the method is to be repeated there; there were too many."""

_REASONS: Final[dict[Refusal, str]] = {
    "": "and no end of redirects",
    "target": "which is not followed",
    "origin": "which is another origin and not followed; hint: give that address itself, if it is to be trusted",
    "downgrade": "which is not encrypted and not followed; hint: give an address that answers by itself",
    "method": "by a status that does not say to repeat the request; hint: give that address itself",
    "circle": "and no end of redirects",
}


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where an answer sends its request: `method` to `url`, with the body or without. `refusal` is "" when it is followed."""

    url: str
    method: str
    keeps_body: bool
    refusal: Refusal = ""

    @property
    def reason(self) -> str:
        """Where it leads and why it is not followed, as the rest of a sentence about an answer."""
        return f"a redirect to {self.url.partition('?')[0] or 'no address'}, {_REASONS[self.refusal]}"

    @property
    def host(self) -> str:
        """`host` or `host:port` of the target."""
        return urlsplit(self.url).netloc


class Redirects:
    """The redirects of one request: as `redirect_of`, but for no more than `MAX_REDIRECTS`, and to no place twice."""

    def __init__(self) -> None:
        self._seen: list[tuple[str, str]] = []

    def next(self, method: str, url: str, status: int, location: str) -> Redirect | None:
        """Return where the answer to a request sends it."""
        found = redirect_of(method, url, status, location)
        if found is None or found.refusal:
            return found
        self._seen.append((method, url))
        if len(self._seen) > MAX_REDIRECTS or (found.method, found.url) in self._seen:
            return Redirect(found.url, found.method, found.keeps_body, "circle")
        return found


def redirect_of(method: str, url: str, status: int, location: str) -> Redirect | None:
    """Return where an answer sends its request; None when it is no redirect.

    Args:
        method: of the request.
        url: of the request, absolute.
        status: of the answer.
        location: its Location header, "" without one.
    """
    if not 300 <= status < 400 or status == 304:
        return None
    target = _joined(url, location)
    if status not in _FOLLOWED or not target:
        return Redirect(target, method, keeps_body=True, refusal="target")
    changed = status == 303 and method not in ("GET", "HEAD")
    meant = "GET" if changed else method
    refusal: Refusal = ""
    if not is_same_origin(url, target):
        lower = is_same_origin(target, url)
        refusal = "downgrade" if lower else "origin"
    elif status in (301, 302) and method not in _SAFE:
        refusal = "method"
    return Redirect(target, meant, keeps_body=not changed, refusal=refusal)


def is_same_origin(url: str, target: str) -> bool:
    """Whether a request to a URL may go on to the target with all that is in it: the same origin, or its https."""
    ours, theirs = _split(url), _split(target)
    if ours is None or theirs is None or (ours.hostname or "").rstrip(".") != (theirs.hostname or "").rstrip("."):
        return False
    before, after = _port(ours), _port(theirs)
    upgraded = (ours.scheme, before, theirs.scheme, after) == ("http", 80, "https", 443)
    return upgraded or (ours.scheme == theirs.scheme and before == after)


def _joined(url: str, location: str) -> str:
    """Return the absolute http or https URL that a Location means, encoded, without user and fragment; "" when it means none."""
    try:
        parts = _split(urljoin(url, quote(location.strip(), safe=_KEPT)))
    except ValueError:
        return ""
    if not location.strip() or parts is None:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))


def _split(url: str) -> SplitResult | None:
    parts = split_web_url(url)
    return parts if parts and parts.port != 0 else None


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]
