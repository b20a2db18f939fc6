"""Messages about events for people: one line per event, and the body for a chat's incoming webhook.

The functions are pure. Names and messages come from untrusted servers and documents: in every format they stay text
and never mention a person.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcpfactory_pipeline.base.text import printable

_LONGEST: Final = 1500  # characters of a line; chats refuse much more
# Text after the server's name in the line about an event. For other events, the line shows the kind.
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


class _NoticeFields(dict[str, Any]):
    """The fields of an event, as text; what it does not have is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def notice_line(notice: Mapping[str, Any]) -> str:
    """Return an event as one line of plain text without invisible characters."""
    kind = str(notice["event"])
    if kind == "run.finished":
        said = "a run ended: " + ", ".join(f"{name} {outcome}" for name, outcome in notice.get("servers", {}).items())
    else:
        known = _NoticeFields({key: "" if value is None else value for key, value in notice.items()})
        sentence = _SENTENCES.get(kind, f"{kind.replace('{', '')} {{stage}} {{message}}")
        server = f"{notice['server']}: " if notice.get("server") else ""
        said = server + sentence.format_map(known)
    return _one_line(said).rstrip(":, ")


def notice_command(notice: Mapping[str, Any]) -> str:
    """Return the command that comes next, "" for none."""
    return _one_line(str(notice.get("command") or ""))


def notice_link(notice: Mapping[str, Any]) -> str:
    """Return the link to an event's page, "" if the dashboard's address is not configured."""
    return str(notice.get("link") or "")


def _one_line(text: str) -> str:
    line = " ".join(printable(text.encode("utf-8", "replace").decode()).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _plain(notice: Mapping[str, Any]) -> dict[str, Any]:
    return dict(notice)


def _slack(notice: Mapping[str, Any]) -> dict[str, Any]:
    """Slack reads `<!channel>`, `<@U1>` and `<url|text>` in any text: its three characters are escaped, its marks are off."""
    lines = [notice_line(notice), *filter(None, [notice_command(notice), notice_link(notice)])]
    text = "\n".join(lines).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": text, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}


def _teams(notice: Mapping[str, Any]) -> dict[str, Any]:
    """A card of runs of text, in which Teams reads no marks: a `TextBlock` would make links and headings of them."""
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


_FORMS: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "json": _plain,
    "slack": _slack,
    "teams": _teams,
}


def _bytes(form: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Callable[[Mapping[str, Any]], bytes]:
    return lambda notice: json.dumps(form(notice), ensure_ascii=False).encode("utf-8", "replace")


BODIES: Final[Mapping[str, Callable[[Mapping[str, Any]], bytes]]] = {
    name: _bytes(form) for name, form in _FORMS.items()
}
