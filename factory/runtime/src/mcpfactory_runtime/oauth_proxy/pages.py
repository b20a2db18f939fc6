"""The two pages that a person sees: may this program act for you, and why that is not possible. Pure; no scripts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_runtime.auth.authorization import is_local

_FRAME: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --page: #f4f5f7; --card: #fff; --text: #1b1f24; --faint: #57606a; --line: #d0d7de; --yes: #0b5cad; --on-yes: #fff; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --page: #0d1117; --card: #161b22; --text: #e6edf3; --faint: #9aa4af; --line: #3d444d; --yes: #6cb6ff; --on-yes: #0d1117; }}
}}
body {{ margin: 0; padding: clamp(1rem, 8vh, 5rem) 1rem; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }}
main {{ box-sizing: border-box; max-width: 34rem; margin: 0 auto; padding: 1.5rem; background: var(--card); border: 1px solid var(--line); border-radius: .75rem; overflow-wrap: anywhere; }}
h1 {{ margin: 0 0 .75rem; font-size: 1.4rem; line-height: 1.3; }}
p {{ margin: 0; }}
dl {{ margin: 1.25rem 0; padding: 1rem 0; border: solid var(--line); border-width: 1px 0; }}
dt {{ color: var(--faint); font-size: .875rem; }}
dd {{ margin: 0 0 .75rem; }}
dd:last-child {{ margin: 0; }}
small {{ display: block; color: var(--faint); font-size: .875rem; }}
form {{ display: flex; flex-wrap: wrap; gap: .75rem; }}
button {{ flex: 1 1 8rem; min-height: 2.75rem; padding: .5rem 1rem; font: inherit; font-weight: 600; color: var(--text); background: none; border: 1px solid var(--faint); border-radius: .5rem; cursor: pointer; }}
button[value=allow] {{ color: var(--on-yes); background: var(--yes); border-color: var(--yes); }}
button:focus-visible {{ outline: 3px solid var(--yes); outline-offset: 2px; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
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
    return _FRAME.format(title=f"Allow access to {escape(server)}?", body=body)


def _row(name: str, value: str, more: str) -> str:
    small = f"<small>{escape(more)}</small>" if more else ""
    return f"<dt>{escape(name)}</dt><dd>{escape(value)}{small}</dd>"


def error_page(text: str) -> str:
    """Return the page that explains why a login cannot continue."""
    return _FRAME.format(title="This login cannot continue", body=f"<p>{escape(text)}</p>")
