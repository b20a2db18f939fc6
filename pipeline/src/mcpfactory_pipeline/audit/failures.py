"""Why a server of a client could not be asked, in words, and what to do about just that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from mcpfactory_pipeline.audit.handed import Handed
from mcpfactory_pipeline.base.errors import PipelineError, StageError
from mcpfactory_runtime.client import ConnectionLostError, HttpError, ProtocolError
from mcpfactory_runtime.errors import McpfactoryError

__all__ = ["NotThereError", "failure"]

_BY_HAND: Final = "start it by hand, and read what it says"
_WORDS: Final = 300  # characters of what a server says that are told
_WITH_SECRETS: Final = "--with-secrets hands it the real values"
_LOGIN: Final = "log in with its client, which an audit does not do, or renew the token in the entry"
_SANDBOX: Final = (
    "the sandbox may have denied that: it gives a server the system, its own program and its folder, and no more; "
    "--isolation none starts one that you trust without it"
)
_DENIED: Final = re.compile(r"permission ?denied|operation not permitted|PermissionError|EACCES|EPERM", re.IGNORECASE)
# How the words of a failure at a URL begin, and what to do; the first that fits counts. A server's own words come behind.
_AT_URL: Final[Sequence[tuple[re.Pattern[str], str]]] = (
    (re.compile(r".*is not an http or https URL"), "correct the address in the entry"),
    (re.compile(r"no connection to .*the name is unknown", re.IGNORECASE), "correct the host in the entry, or look whether its name is known to this network"),
    (re.compile(r"no connection to .*(certificate|\bSSL\b|\bTLS\b)", re.IGNORECASE), "have its certificate mended by who runs it, or make the authority that signed it known to this machine"),
    (re.compile(r"no connection to .*(codec can't encode|illegal header|invalid header)", re.IGNORECASE), "correct the headers and the address in the entry: they have a character that cannot be sent"),
    (re.compile(r"no connection to .*(refused|timeout|timed out|unreachable|no route|reset by peer|disconnected)", re.IGNORECASE), "start what serves this address, or correct the host and the port in the entry"),
    (re.compile(r"no connection to"), "read what it says, and look whether the address in the entry is the server's own"),
    (re.compile(r"the server answered with HTTP status 3\d\d"), "put the address that it leads to into the entry, if that is the server's own"),
    (re.compile(r"the server answered with HTTP status (404|405|410)"), "correct the path of the address in the entry: there is no MCP server at it"),
    (re.compile(r"the server answered with HTTP status (429|5\d\d)"), "try it again later, and ask who runs it"),
    (re.compile(r"the server answered with HTTP status \d+"), "take the address from the server's documentation: what answers at this one is no MCP server, or not for this request"),
)  # fmt: skip
# Our own words for a program that is not there, from their beginning; a server's own words may name any file that it does not find.
_ABSENT: Final = re.compile(
    r"cannot start '[^']*': No such file"
    r"|the server ended with exit code 126; it last wrote to stderr: error: .{1,200}? cannot be started apart from the workspace: \[Errno 2\]"
)


class NotThereError(PipelineError):
    """A program that an entry names is not on this machine."""


def failure(error: Exception, handed: Handed, *, url: bool, apart: bool, seconds: float) -> tuple[str, str]:
    """Return what went wrong, without a value that was handed over, and the hint for it.

    `url`: it was asked at one, and no command was started; `apart`: a sandbox was around the command; `seconds` is how long it had.
    """
    if isinstance(error, TimeoutError):
        longer = (
            "give it longer with --timeout" if url else "give it longer with --timeout: packages may be fetched first"
        )
        return f"it did not list its tools within {seconds:g} seconds", _or_secrets(longer, handed)
    status = error.status if isinstance(error, HttpError) else 0
    if status in {401, 403}:
        return f"it wants a login (HTTP {status}), and was not looked at", _WITH_SECRETS if handed.kept_back else _LOGIN
    known = isinstance(error, ConnectionLostError | HttpError | ProtocolError | McpfactoryError | OSError | ValueError)
    told = _told(error, handed) if known else type(error).__name__
    if isinstance(error, StageError):
        hint = "mcpfactory doctor says what is missing; --isolation auto takes the best that is there"
    elif isinstance(error, NotThereError):
        hint = error.hint
    elif url:
        other = "ask who runs it: what it answers is not what the protocol allows"
        hint = next((hint for begins, hint in _AT_URL if begins.match(told)), other)
    else:
        hint = _of_command(str(error), told, handed, apart=apart)
    return f"it could not be asked: {told}", hint


def _told(error: Exception, handed: Handed) -> str:
    text = " ".join(handed.masked_text(str(error)).split())
    return text[:_WORDS] or type(error).__name__


def _of_command(text: str, told: str, handed: Handed, *, apart: bool) -> str:
    if _ABSENT.match(told):
        return "install it, or correct the path in the entry"
    if not _DENIED.search(text):
        return _or_secrets(_BY_HAND, handed)
    if not apart:
        return _or_secrets("let your user read and run what it names", handed)
    # The words are the server's own, and may speak of a login: what is looked at first is what costs a person the least.
    return f"{_WITH_SECRETS}; if that is not it, {_SANDBOX}" if handed.kept_back else _SANDBOX


def _or_secrets(hint: str, handed: Handed) -> str:
    """Return a hint with the option that hands over real values, where it did not get them."""
    return f"{hint}; {_WITH_SECRETS}" if handed.kept_back else hint
