"""The two pages that a person sees: may this program act for you, and why that is not possible. Pure; no scripts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_runtime.auth.metadata import is_local

__all__ = ["consent_page", "error_page"]

_FRAME: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem}}
button{{font:inherit;padding:.5rem 1.5rem;margin-right:1rem}}dt{{font-weight:600}}dd{{margin:0 0 .5rem;overflow-wrap:anywhere}}</style>
<h1>{title}</h1>
{body}
</html>
"""


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
        ("Program", f"{client or 'without a name'} (its own words)"),
        ("The answer goes to", f"{target} — {redirect_uri}"),
    ]
    rows += [("It is described at", page)] if page else []
    rows += [("It may", ", ".join(scopes))] if scopes else []
    listed = "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows)
    body = f"""<p>A program wants to use <strong>{escape(server)}</strong> in your name. Allow it only if you started this yourself,
just now, in that program. You then log in with {escape(provider)}.</p>
<dl>{listed}</dl>
<form method="post" action="{escape(action)}"><input type="hidden" name="request" value="{escape(request)}">
<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Deny</button></form>"""
    return _FRAME.format(title=f"Allow access to {escape(server)}?", body=body)


def error_page(text: str) -> str:
    """Return the page that says why a login cannot go on."""
    return _FRAME.format(title="This login cannot go on", body=f"<p>{escape(text)}</p>")
