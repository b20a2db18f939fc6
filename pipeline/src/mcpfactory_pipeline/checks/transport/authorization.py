"""HTTP probes of a protected server: requests without credentials, with invalid ones, and for its metadata."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.checks.evidence import HttpAnswer, Lifecycle
from mcpfactory_pipeline.checks.exchange import LATEST_HANDSHAKE
from mcpfactory_pipeline.checks.transport.http_probes import HttpAsker, HttpProbe, hello

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
_ENDLESS: Final = 4_102_444_800  # seconds since 1970: the year 2100
_ALTERED: Final = 8  # characters; the last one alone may have unused bits


def metadata_url(challenge: str) -> str:
    """Return the URL of the metadata in a WWW-Authenticate header; "" if it has none."""
    found = re.search(r'\bresource_metadata\s*=\s*(?:"([^"]*)"|([^\s,"]+))', challenge, re.IGNORECASE)
    return (found[1] or found[2] or "") if found else ""


def scheme(challenge: str) -> str:
    """Return the authentication scheme of a WWW-Authenticate header, in lowercase; "" if there is no header."""
    return challenge.partition(" ")[0].strip(",").lower()


def is_of_origin(url: str, other: str) -> bool:
    """Return True if two URLs have the same scheme, host and port."""
    one, two = urlsplit(url), urlsplit(other)
    return (one.scheme, one.netloc.lower()) == (two.scheme, two.netloc.lower())


def probe_authorization(
    url: str, credentials: Mapping[str, str], spoken: Collection[Lifecycle], modern: str
) -> dict[str, HttpAnswer]:
    """Send the probes; if the server needs no credentials, only the first.

    Args:
        url: the URL of the endpoint, after redirects.
        credentials: the headers that the caller gave for every request.
        spoken: the lifecycles of the server; none if it answers nothing without credentials.
        modern: the per-request revision of the server.
    """
    asker = HttpAsker(url, modern)
    asker.sessions["modern"] = {"MCP-Protocol-Version": modern}
    asker.run(_DISCOVERY)
    if _is_protected(asker):
        asker.run(row for row in _token_rows(credentials) if not spoken or row.lifecycle in spoken)
    return asker.answers


def _is_protected(asker: HttpAsker) -> bool:
    first = asker.answers.get("no-credentials")
    return first is not None and first.status == 401


def _named_metadata(asker: HttpAsker) -> str:
    return metadata_url(asker.answers["no-credentials"].headers.get("www-authenticate", ""))


def _metadata(asker: HttpAsker) -> str:
    """Return the URL of the metadata: from the challenge, or else the well-known URL with the path of the endpoint."""
    return _named_metadata(asker) or _root_metadata(asker) + urlsplit(asker.url).path.rstrip("/")


def _root_metadata(asker: HttpAsker) -> str:
    here = urlsplit(asker.url)
    return f"{here.scheme}://{here.netloc}{WELL_KNOWN}"


def _has_metadata(asker: HttpAsker) -> bool:
    return _is_protected(asker) and is_of_origin(_metadata(asker), asker.url)


def _lacks_metadata(asker: HttpAsker) -> bool:
    answer = asker.answers.get("metadata")
    return answer is not None and answer.status != 200 and not _named_metadata(asker)


_DISCOVERY: Final = (
    HttpProbe("no-credentials", "legacy", body=hello(LATEST_HANDSHAKE)),
    HttpProbe("metadata", "legacy", verb="GET", place=_metadata, when=_has_metadata),
    HttpProbe("root-metadata", "legacy", verb="GET", place=_root_metadata, when=_lacks_metadata),
)


def _token_rows(credentials: Mapping[str, str]) -> list[HttpProbe]:
    """Return requests with invalid credentials, in each lifecycle."""
    unsigned = f"{_segment({'alg': 'none', 'typ': 'JWT'})}.{_segment({'sub': 'mcpfactory', 'exp': _ENDLESS})}."
    tokens = {
        "an invalid token": {"Authorization": "Bearer mcpfactory-invalid-token"},
        "a token without signature": {"Authorization": f"Bearer {unsigned}"},
        "the given credentials with other characters at their end": {
            name: _altered(value) for name, value in credentials.items()
        },
    }
    rows: list[HttpProbe] = []
    for number, (what, headers) in enumerate(tokens.items() if credentials else [*tokens.items()][:-1], 1):
        about = f"a request with {what}"
        rows += [
            HttpProbe(f"token-{number}", "legacy", about, headers=headers, body=hello(LATEST_HANDSHAKE)),
            HttpProbe(
                f"modern-token-{number}", "modern", about, headers=headers, method="server/discover", session="modern"
            ),
        ]
    return rows


def _segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _altered(value: str) -> str:
    kept, end = value[:-_ALTERED], value[-_ALTERED:]
    head, space, end = end.rpartition(" ")  # the name of the scheme stays
    return kept + head + space + "".join("B" if one == "A" else "A" for one in end)
