"""What is said of a redirect that is not followed: where it leads, why it was left, and what the person who runs the server does."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_runtime.redirects import MAX_REDIRECTS, Redirect
from mcpfactory_runtime.upstream.operation import Operation

__all__ = ["redirect_message"]

_LOGIN: Final = re.compile(r"(?<![a-z])(log-?in|sign-?in|sso|saml2?|oauth2?|authori[sz]e|accounts|idp)(?![a-z])", re.I)
_PERSON: Final = "hint: the person who runs this server"


def redirect_message(redirect: Redirect | None, operation: Operation, url: str, variable: str) -> str:
    """Return what follows the status in the message of a call: `a redirect to …`, and a hint that fits.

    Args:
        redirect: what was not followed; None for an answer that is not told by it.
        operation: what was called.
        url: of the request.
        variable: sets the address of the API.
    """
    if redirect is None or redirect.refusal == "target":
        return "a redirect that says no address to go to.\nhint: use another tool, or ask the API's provider."
    where, sets = _where(redirect, url), f"{_PERSON} sets {variable}"
    if redirect.refusal == "circle":
        said = f"a redirect {where}, and no end of redirects after {MAX_REDIRECTS} or the same one again."
    elif redirect.refusal == "method":
        said = f"a redirect {where}, by a status that does not say to repeat {operation.method} there."
    elif redirect.refusal == "downgrade":
        return f"a redirect {where}, which is not encrypted and not followed.\n{sets} to an address that answers by itself."
    else:
        said = f"a redirect {where}, which is another origin and not followed."
    if _LOGIN.search(redirect.host + urlsplit(redirect.url).path):
        return f"{said}\n{_PERSON} checks its credentials: that looks like a page to log in."
    if slash := _slash(redirect, url):
        return f"{said}\n{_PERSON} corrects the path in the API document: the API wants it {slash} a slash at its end."
    base = _base(redirect, operation, url)
    return f"{said}\n{sets} to {base or 'the address that answers'}, if that is to be trusted."


def _where(redirect: Redirect, url: str) -> str:
    """`to api.example.com`, or which path of the same host; without the query, which may hold what is secret."""
    ours, theirs = urlsplit(url), urlsplit(redirect.url)
    if redirect.refusal == "downgrade":
        return f"to http://{redirect.host}"
    return f"to {redirect.host}" if ours.netloc != theirs.netloc else f"to {theirs.path or '/'} of the same host"


def _slash(redirect: Redirect, url: str) -> str:
    """`with` or `without`, where a slash at the end is the only difference."""
    ours, theirs = urlsplit(url), urlsplit(redirect.url)
    if ours.netloc != theirs.netloc or ours.path.rstrip("/") != theirs.path.rstrip("/") or ours.path == theirs.path:
        return ""
    return "with" if theirs.path.endswith("/") else "without"


def _base(redirect: Redirect, operation: Operation, url: str) -> str:
    """Return the base URL that the redirect shows: what is in front of the same path; "" when it leads to another path."""
    ours, theirs = urlsplit(url).path, urlsplit(redirect.url)
    length = len([one for one in operation.path.partition("?")[0].split("/") if one])
    tail = "/".join(["", *ours.split("/")[-length:]]) if length else "/"
    if not theirs.path.endswith(tail) or ours.count("/") < length:
        return ""
    return f"{theirs.scheme}://{theirs.netloc}{theirs.path.removesuffix(tail)}"
