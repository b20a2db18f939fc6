"""What happened, as one mail a command: sent when the command ends, by the mail server that the workspace names."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Mapping
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any, Final

from mcpfactory_pipeline.base.text import pluralize, printable
from mcpfactory_pipeline.notices.settings import MailSettings
from mcpfactory_pipeline.notices.undelivered import why_undelivered
from mcpfactory_pipeline.notices.words import notice_command, notice_line, notice_link

__all__ = ["Mail", "mail_of"]

_MOST: Final = 200  # events that one mail tells; of more it says how many
_SUBJECT: Final = 150  # characters


class Mail:
    """Gathers events and sends them together; `close` says why that did not work."""

    def __init__(self, settings: MailSettings) -> None:
        self._settings = settings
        self._notices: list[Mapping[str, Any]] = []

    def send(self, notice: Mapping[str, Any]) -> None:
        """Take one event."""
        self._notices.append(notice)

    @property
    def undelivered(self) -> frozenset[str]:
        """The ids of the events that were to be in the mail: it arrives with all of them, or not."""
        return frozenset(str(notice["id"]) for notice in self._notices)

    def close(self) -> str:
        """Send the mail; words when that did not work, else nothing."""
        if not self._notices:
            return ""
        settings, message = self._settings, mail_of(self._settings, self._notices)
        try:
            self._send(message)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            # ValueError: a user or password that is no ASCII.
            return f"{pluralize(len(self._notices), 'event')} not mailed by {settings.host}: {why_undelivered(error)}"
        return ""

    def _send(self, message: EmailMessage) -> None:
        settings = self._settings
        context = ssl.create_default_context()
        options: dict[str, Any] = {"timeout": settings.timeout, "local_hostname": "localhost"}
        if settings.tls == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(settings.host, settings.port, context=context, **options)
        else:
            server = smtplib.SMTP(settings.host, settings.port, **options)
        with server:
            if settings.tls == "starttls":
                server.starttls(context=context)
            if settings.user:
                server.login(settings.user, settings.password)
            server.send_message(message)


def mail_of(settings: MailSettings, notices: list[Mapping[str, Any]]) -> EmailMessage:
    """Return the mail that tells events. A header is one line, whatever names have in them."""
    message, first = EmailMessage(), notice_line(notices[0])
    many = f"{pluralize(len(notices), 'thing')}, first " if len(notices) > 1 else ""
    workspace = " ".join(printable(str(notices[0].get("workspace", ""))).split())
    message["Subject"] = f"[{workspace}] {many}{first}"[:_SUBJECT]
    message["From"], message["To"] = settings.sender, ", ".join(settings.to)
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=settings.sender.rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"  # nobody's absence answers it
    parts = [
        "\n  ".join(filter(None, (notice_line(one), notice_command(one), notice_link(one)))) for one in notices[:_MOST]
    ]
    if len(notices) > _MOST:
        parts.append(f"and {len(notices) - _MOST} more")
    message.set_content("\n\n".join(parts).encode("utf-8", "replace").decode() + "\n")
    return message
