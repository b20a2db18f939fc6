"""Origins that receive a server's credentials, from its report, and their changes in an update. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from mcpfactory_codegen.servers.diff import CHANGES, Change
from mcpfactory_codegen.servers.errors import CreateError
from mcpfactory_codegen.sources.translation import entries, table

_CODE: Final = "origin-changed"


def origin_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], added: Collection[str] = ()
) -> tuple[Change, ...]:
    """Return a change for each new origin that is called or issues tokens.

    Args:
        before: the report of the current server; one without URLs (from an earlier mcpfactory) is not compared.
        after: the report of the updated server.
        added: labels of new documents: their credentials are separate, and not set yet.
    """
    known = {origin for _, _, origin in _destinations(before)}
    if not known:
        return ()
    known |= {f"https://{one[7:-3]}:443" for one in known if one.startswith("http://") and one.endswith(":80")}
    new = {
        origin: what
        for what, owner, origin in _destinations(after)
        if origin not in known
        and not any(owner == one or owner.startswith((f"{one}.", f"{one}-", f"{one}_")) for one in added)
    }
    was = ", ".join(sorted(known))
    return tuple(
        Change(
            CHANGES[_CODE],
            _CODE,
            "",
            what,
            f"{what} leads to {origin} now; until now the server knew {was}: its credentials would go there",
        )
        for origin, what in new.items()
    )


def refuse_new_origins(server: str, changes: Collection[Change]) -> None:
    """Refuse changes that would send existing credentials to a new origin.

    Raises:
        CreateError: `origin`: `changes` contains one.
    """
    found = [change.message for change in changes if change.code == _CODE]
    if found:
        raise CreateError(
            "; ".join(found),
            f"a person who knows that address types: mcpfactory update {server} --accept-origin; "
            "--dry-run shows all that would change",
            "origin",
        )


def _destinations(report: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what leads there, the server or scheme that owns it, and the origin."""
    address, credentials = table(report, "address"), table(report, "credentials")
    base = str(address.get("base_url") or "")
    if not address.get("rootless") and (origin := _origin(base)):
        yield "the base URL", "", origin
    for _, one in entries(address, "servers"):
        if origin := _origin(str(one.get("url") or "")):
            yield f"the address of {one.get('name')}", str(one.get("name")), origin
    for _, scheme in entries(credentials, "schemes"):
        for _, flow in entries(scheme, "flows"):
            for key, url in flow.items():
                if key.endswith("_url") and url and (origin := _origin(urljoin(base, str(url)))):
                    yield f"the {key} of {scheme.get('name')}", str(scheme.get("name")), origin


def _origin(url: str) -> str:
    """Return the normalized scheme, host and port of a URL; "" if the URL is invalid."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.hostname.rstrip('.')}:{port}" if parts.hostname else ""
