"""Notifications by webhook and by mail, and their messages.

Names and texts come from untrusted servers and documents. Every message must therefore be plain text that mentions no
people.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import queue
import smtplib
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any, Final

import httpx

from mcpfactory_pipeline.base.text import pluralize, printable
from mcpfactory_pipeline.workspace.settings import EventSettings, MailSettings
from mcpfactory_runtime.errors import connection_error_reason, find_os_error

_LONGEST: Final = 1500  # maximum characters of a line, because chats refuse much longer messages
# Kind of event → text after the server's name. For other kinds, the text is the name of the kind.
_SENTENCES: Final = {
    "waits": "{kind}: {message}", "step.finished": "{stage} {outcome}: {message}", "trouble": "{message}",
    "approved": "{version} is approved for {channel}{stage} by {actor}: {reason}",
    "rejected": "{version} is rejected for {channel}{stage} by {actor}: {reason}",
    "promoted": "{version} is in {channel}, by {actor}: {reason}",
    "rolled-back": "{version} is back in {channel}, by {actor}: {reason}",
    "held": "{channel} is held by {actor}: {reason}", "released": "{channel} is released by {actor}: {reason}",
    "retired": "retired by {actor}: {reason}", "revived": "kept again, by {actor}: {reason}",
    "renamed": "was {previous}, renamed by {actor}: {reason}", "waived": "{rule} is waived until {until} by {person}: {reason}",
    "published": "{version} is at {target}, by {actor}",
}  # fmt: skip


def notice_line(notice: Mapping[str, Any]) -> str:
    """Return an event as one line of plain text without invisible characters."""
    kind = str(notice["event"])
    if kind == "run.finished":
        said = "a run ended: " + ", ".join(f"{name} {outcome}" for name, outcome in notice.get("servers", {}).items())
    else:
        known = defaultdict(str, {key: "" if value is None else value for key, value in notice.items()})
        sentence = _SENTENCES.get(kind, f"{kind.replace('{', '')} {{stage}} {{message}}")
        server = f"{notice['server']}: " if notice.get("server") else ""
        said = server + sentence.format_map(known)
    return _one_line(said).rstrip(":, ")


def notice_command(notice: Mapping[str, Any]) -> str:
    """Return the next command; "" without a command."""
    return _one_line(str(notice.get("command") or ""))


def notice_link(notice: Mapping[str, Any]) -> str:
    """Return the link to an event's page; "" if the dashboard's address is not configured."""
    return str(notice.get("link") or "")


def _one_line(text: str) -> str:
    line = " ".join(printable(text.encode("utf-8", "replace").decode()).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _slack(notice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format of Slack. Escape `&`, `<` and `>`, because Slack interprets `<!channel>` and `<url|text>`."""
    lines = [notice_line(notice), *filter(None, [notice_command(notice), notice_link(notice)])]
    text = "\n".join(lines).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": text, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}


def _teams(notice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format of Teams, with text runs, because a `TextBlock` would interpret Markdown."""
    lines = [(notice_line(notice), False), *([(command, True)] if (command := notice_command(notice)) else [])]
    body = [
        {
            "type": "RichTextBlock",
            "inlines": [{"type": "TextRun", "text": text, **({"fontType": "Monospace"} if code else {})}],
        }
        for text, code in lines
    ]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": body,
    }
    if link := notice_link(notice):
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open in the dashboard", "url": link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


_BODIES: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {"json": dict, "slack": _slack, "teams": _teams}
_OF_MAIL: Final[tuple[tuple[type[Exception], str], ...]] = (
    (smtplib.SMTPNotSupportedError, "it does not offer what `tls` or `user` of [pipeline.events.mail] ask for"),
    (smtplib.SMTPAuthenticationError, "it refuses the user or the password"),
    (smtplib.SMTPSenderRefused, "it refuses `from`"),
    (smtplib.SMTPRecipientsRefused, "it refuses everyone in `to`"),
    (smtplib.SMTPServerDisconnected, "it closed the connection"),
)


def delivery_error_reason(error: Exception) -> str:
    """Describe a delivery error without the error's text, which may contain a URL, a user or a password."""
    known = next((words for kind, words in _OF_MAIL if isinstance(error, kind)), "")
    system = find_os_error(error)
    return known or (connection_error_reason(system) if system is not None else type(error).__name__)


_WAITING: Final = 1000  # maximum number of events in the queue; further events are dropped
_LEFT: Final = 10.0  # maximum seconds to wait for pending events at the end of a command
_PAUSE: Final = 0.5  # seconds before the second attempt; the pause doubles before each later attempt


def webhook_signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return `sha256=` and the HMAC of `<timestamp>.<body>`. The HMAC proves sender and time to the receiver."""
    return f"sha256={hmac.new(secret.encode(), timestamp.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


class WebhookSender:
    """Sender of events to a webhook, from a separate thread."""

    def __init__(self, settings: EventSettings) -> None:
        self._settings = settings
        self._queue: queue.Queue[Mapping[str, Any] | None] = queue.Queue(_WAITING)
        self._closing = threading.Event()
        self._why = ""
        self._answered = ""  # the receiver's last response to the current event
        self._sent: set[str] = set()  # IDs of the queued events
        self._thread = threading.Thread(target=self._deliver, name="webhook", daemon=True)
        self._thread.start()

    def send(self, notice: Mapping[str, Any]) -> None:
        """Queue one event."""
        self._sent.add(str(notice["id"]))
        try:
            self._queue.put_nowait(notice)
        except queue.Full:
            self._why = f"more than {_WAITING} were waiting"

    def close(self) -> str:
        """Wait a few seconds for pending events; return a message about undelivered events, or ""."""
        deadline = time.monotonic() + _LEFT
        with suppress(queue.Full):  # if the queue stays full, the receiver is too slow, so give up
            self._queue.put(None, timeout=_LEFT)
        self._thread.join(max(0.0, deadline - time.monotonic()))
        self._closing.set()
        if self._thread.is_alive():
            self._why = f"{self._answered}, and time ran out" if self._answered else "the receiver is too slow"
        elif self._sent and not self._why:
            self._why = "the delivery thread ended early"
        missed = len(self._sent)
        return f"{pluralize(missed, 'event')} not delivered to the webhook: {self._why}" if missed else ""

    @property
    def undelivered(self) -> frozenset[str]:
        """The IDs of the undelivered events."""
        return frozenset(self._sent.copy())

    def _deliver(self) -> None:
        with httpx.Client(timeout=self._settings.timeout, follow_redirects=False) as client:
            while (notice := self._queue.get()) is not None and not self._closing.is_set():
                if why := self._post(client, notice):
                    self._why = why
                else:
                    self._sent.discard(str(notice["id"]))

    def _post(self, client: httpx.Client, notice: Mapping[str, Any]) -> str:
        """Deliver one event; return the error, or "".

        Do not retry an event that the receiver rejects permanently.
        """
        body = json.dumps(_BODIES[self._settings.format](notice), ensure_ascii=False).encode("utf-8", "replace")
        why = self._answered = ""
        for attempt in range(self._settings.attempts):
            if attempt and self._closing.wait(_PAUSE * float(1 << (attempt - 1))):
                break
            try:
                headers = self._headers(notice, body)
                with client.stream("POST", self._settings.url, content=body, headers=headers) as answer:
                    status = answer.status_code  # do not read the body, because its size is unlimited
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                why = delivery_error_reason(error)
                continue
            if status < 300:
                return ""
            why = self._answered = f"it answered {status}"
            if status < 500 and status not in {408, 429}:
                break
        return why

    def _headers(self, notice: Mapping[str, Any], body: bytes) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "X-MCPFactory-Event": str(notice["event"]),
            "X-MCPFactory-Delivery": str(notice["id"]),
        }
        if not self._settings.secret:
            return headers
        timestamp = str(int(time.time()))
        signed = webhook_signature(self._settings.secret, timestamp, body)
        return {**headers, "X-MCPFactory-Timestamp": timestamp, "X-MCPFactory-Signature": signed}


_MOST: Final = 200  # maximum number of events in one mail; further events are only counted
_SUBJECT: Final = 150  # maximum characters of a subject


class MailSender:
    """Sender of all events in one mail."""

    def __init__(self, settings: MailSettings, timeout: float) -> None:
        self._settings, self._timeout = settings, timeout
        self._notices: list[Mapping[str, Any]] = []

    def send(self, notice: Mapping[str, Any]) -> None:
        """Add one event to the mail."""
        self._notices.append(notice)

    @property
    def undelivered(self) -> frozenset[str]:
        """The IDs of the unsent events."""
        return frozenset(str(notice["id"]) for notice in self._notices)

    def close(self) -> str:
        """Send the mail; return the error, or ""."""
        if not self._notices:
            return ""
        settings, message = self._settings, compose_mail(self._settings, self._notices)
        try:
            self._send(message)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            # smtplib raises ValueError if the user or password contains non-ASCII characters
            return f"{pluralize(len(self._notices), 'event')} not mailed by {settings.host}: {delivery_error_reason(error)}"
        return ""

    def _send(self, message: EmailMessage) -> None:
        settings = self._settings
        context = ssl.create_default_context()
        options: dict[str, Any] = {"timeout": self._timeout, "local_hostname": "localhost"}
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


def compose_mail(settings: MailSettings, notices: list[Mapping[str, Any]]) -> EmailMessage:
    """Return the mail about these events. Line breaks in names cannot add headers."""
    message, first = EmailMessage(), notice_line(notices[0])
    many = f"{pluralize(len(notices), 'thing')}, first " if len(notices) > 1 else ""
    workspace = " ".join(printable(str(notices[0].get("workspace", ""))).split())
    message["Subject"] = f"[{workspace}] {many}{first}"[:_SUBJECT]
    message["From"], message["To"] = settings.sender, ", ".join(settings.to)
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=settings.sender.rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"  # asks mail programs not to send automatic replies
    parts = [
        "\n  ".join(filter(None, (notice_line(one), notice_command(one), notice_link(one)))) for one in notices[:_MOST]
    ]
    if len(notices) > _MOST:
        parts.append(f"and {len(notices) - _MOST} more")
    message.set_content("\n\n".join(parts).encode("utf-8", "replace").decode() + "\n")
    return message
