"""What waits for a person, as an Atom feed: the newest first, each with the way to where it is decided. Pure: facts in, bytes out."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import Final
from urllib.parse import quote
from xml.etree import ElementTree

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.text import escape_invisible, on_one_line
from mcpfactory_pipeline.dashboard.facts import WorkspaceFacts
from mcpfactory_pipeline.dashboard.inbox import InboxEntry, every_entry
from mcpfactory_pipeline.dashboard.values import shorten
from mcpfactory_pipeline.views.decided import decision_path
from mcpfactory_pipeline.views.waiting import waiting_id
from mcpfactory_runtime.addresses import split_web_url

__all__ = ["FEED", "atom_feed", "entry_path", "folder_url"]

FEED: Final = "feed.atom"
_ATOM: Final = "http://www.w3.org/2005/Atom"
_ENTRIES: Final = 60  # the newest; the inbox has all
_TITLE: Final = 160  # characters
_TEXT: Final = 1000
_EPOCH: Final = "1970-01-01T00:00:00Z"
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML has not


def atom_feed(facts: WorkspaceFacts, link: Callable[[str], str], *, last: str = "", whose: str = "") -> bytes:
    """Return the feed. `link` makes the address of a path of the dashboard, `last` is when the last thing happened.

    An entry keeps its id while the same thing waits, whatever is said of it meanwhile; what waits no more is not in it.
    `whose` keeps what waits for one person by name, or for anybody.
    """
    entries = sorted(every_entry(facts, whose=whose), key=lambda one: one.since or "", reverse=True)[:_ENTRIES]
    root = ElementTree.Element("feed", xmlns=_ATOM)
    _text(root, "title", f"What waits in {facts.name}" + (f" for {whose}" if whose else ""))
    _text(root, "id", _urn(facts.name, "inbox", whose))
    _text(root, "updated", max([last, *(one.since or "" for one in entries)]) or _EPOCH)
    ElementTree.SubElement(root, "link", rel="alternate", type="text/html", href=_plain(link("/")))
    _text(ElementTree.SubElement(root, "author"), "name", facts.name)
    for one in entries:
        _entry(ElementTree.SubElement(root, "entry"), facts.name, one, link(entry_path(one)), last)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def entry_path(one: InboxEntry) -> str:
    """Return the path where a thing is decided: the page of the decision, of the server, or the inbox where that is gone."""
    return f"/{decision_path(one.server, one.about, one.decision)}"


def folder_url(url: str) -> str:
    """Return the address of the folder where an export is served, with its last slash; "" for "".

    Raises:
        ConfigError: for what is none.
    """
    parts = split_web_url(url)
    if url and (parts is None or parts.query or parts.fragment):
        raise ConfigError(f"{url!r} is no address of a site", hint="--public-url https://factory.example.org/site/")
    return quote(url.rstrip("/"), safe="/:@[]%~") + "/" if url else ""


def _entry(entry: ElementTree.Element, workspace: str, one: InboxEntry, href: str, last: str) -> None:
    message, command = on_one_line(one.message), on_one_line(one.command)
    _text(entry, "title", shorten(f"{one.server}: {message}", _TITLE))
    _text(entry, "id", waiting_id(workspace, one))
    _text(entry, "updated", one.since or last or _EPOCH)
    ElementTree.SubElement(entry, "link", rel="alternate", type="text/html", href=_plain(href))
    ElementTree.SubElement(entry, "category", term=one.kind)
    words = [message, f"It waits for {on_one_line(one.whom)}.", *([f"Next: {command}"] if command else [])]
    _text(entry, "summary", shorten("\n".join(words), _TEXT))


def _urn(*parts: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(["mcpfactory", *parts])).urn


def _text(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, name).text = _plain(escape_invisible(text))


def _plain(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
