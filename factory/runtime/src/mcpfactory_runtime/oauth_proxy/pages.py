"""The two pages that a person sees: may this program act for you, and why that is not possible. Pure; no scripts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_runtime.auth.authorization import is_local

_FRAME: Final = Template(Path(__file__).with_name("page.html").read_text("utf-8"))


def consent_page(
    *,
    server: str,
    provider: str,
    client: str,
    page: str,
    redirect_uri: str,
    scopes: Sequence[str],
    action: str,
    request: str,
) -> str:
    """Return the page that asks whether a client may use the server for the person.

    Args:
        server: its name.
        provider: where the person logs in next.
        client: what the client calls itself.
        page: the URL of the document that describes it; "" without one.
        redirect_uri: where the answer goes: all that is known for sure about the client.
        scopes: what it asks for.
        action: where the form goes.
        request: the signed request that the person agrees to.
    """
    parts = urlsplit(redirect_uri)
    target = (
        "a program on this computer" if is_local(redirect_uri) else parts.hostname or f"the application {parts.scheme}:"
    )
    if parts.scheme not in ("http", "https"):
        target = f"the application of {parts.scheme}:"
    rows = [
        ("Program", client or "without a name", "its own words" if client else ""),
        ("The answer goes to", target, redirect_uri),
    ]
    rows += [("It is described at", page, "")] if page else []
    rows += [("It may", ", ".join(scopes), "")] if scopes else []
    listed = "\n".join(_row(*row) for row in rows)
    body = f"""<p>A program wants to use <strong>{escape(server)}</strong> in your name. Allow it only if you started this yourself,
just now, in that program. You then log in with {escape(provider)}.</p>
<dl>{listed}</dl>
<form method="post" action="{escape(action)}"><input type="hidden" name="request" value="{escape(request)}">
<button name="decision" value="deny">Deny</button><button name="decision" value="allow">Allow</button></form>"""
    return _FRAME.substitute(title=f"Allow access to {escape(server)}?", body=body)


def _row(name: str, value: str, more: str) -> str:
    small = f"<small>{escape(more)}</small>" if more else ""
    return f"<dt>{escape(name)}</dt><dd>{escape(value)}{small}</dd>"


def error_page(text: str) -> str:
    """Return the page that explains why a login cannot continue."""
    return _FRAME.substitute(title="This login cannot continue", body=f"<p>{escape(text)}</p>")
