"""Pages of the OAuth proxy for consent and for errors, without scripts or other resources."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_runtime.auth.authorization import is_local_url

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
    """Return the page on which a user allows or denies a client's access to the server.

    Only the client's redirect URI is verified, not the client's name. `page` is the URL of the client's metadata
    document, or "".
    """
    parts = urlsplit(redirect_uri)
    target = (
        "a program on this computer"
        if is_local_url(redirect_uri)
        else parts.hostname or f"the application {parts.scheme}:"
    )
    if parts.scheme not in ("http", "https"):
        target = f"the application of {parts.scheme}:"
    rows = [
        ("Program", client or "unnamed", "this name is not verified" if client else ""),
        ("Access is given to", target, redirect_uri),
    ]
    rows += [("Described at", page, "")] if page else []
    rows += [("Permissions", ", ".join(scopes), "")] if scopes else []
    listed = "\n".join(_row(*row) for row in rows)
    body = f"""<p>A program wants to use <strong>{escape(server)}</strong> on your behalf. Allow it only if you have
just started this yourself in that program. You then log in with {escape(provider)}.</p>
<dl>{listed}</dl>
<form method="post" action="{escape(action)}"><input type="hidden" name="request" value="{escape(request)}">
<button name="decision" value="deny">Deny</button><button name="decision" value="allow">Allow</button></form>"""
    return _FRAME.substitute(title=f"Allow access to {escape(server)}?", body=body)


def _row(name: str, value: str, more: str) -> str:
    small = f"<small>{escape(more)}</small>" if more else ""
    return f"<dt>{escape(name)}</dt><dd>{escape(value)}{small}</dd>"


def error_page(text: str) -> str:
    """Return a page with the reason why a login cannot continue."""
    return _FRAME.substitute(title="This login cannot continue", body=f"<p>{escape(text)}</p>")
