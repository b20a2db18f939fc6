"""Why an event did not arrive, in words that quote nothing of what was sent."""

from __future__ import annotations

import smtplib
from typing import Final

from mcpfactory_runtime.unreachable import system_error, why_unreachable

__all__ = ["why_undelivered"]

_OF_MAIL: Final[tuple[tuple[type[Exception], str], ...]] = (
    (smtplib.SMTPNotSupportedError, "it does not offer what `tls` or `user` of [pipeline.events.mail] ask for"),
    (smtplib.SMTPAuthenticationError, "it refuses the user or the password"),
    (smtplib.SMTPSenderRefused, "it refuses `from`"),
    (smtplib.SMTPRecipientsRefused, "it refuses everyone in `to`"),
    (smtplib.SMTPServerDisconnected, "it hung up"),
)


def why_undelivered(error: Exception) -> str:
    """Return what happened: the words of an error may quote a URL, a user or a password, and are never told."""
    known = next((words for kind, words in _OF_MAIL if isinstance(error, kind)), "")
    system = system_error(error)
    return known or (why_unreachable(system) if system is not None else type(error).__name__)
