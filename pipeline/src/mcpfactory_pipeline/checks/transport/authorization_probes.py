"""HTTP probes of a protected server: without credentials, with invalid credentials, and for its metadata."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping
from typing import Final

from mcpfactory_pipeline.checks.evidence import HttpProbeAnswer, Lifecycle
from mcpfactory_pipeline.checks.exchange import LATEST_HANDSHAKE, NEEDS_CREDENTIALS
from mcpfactory_pipeline.checks.transport.http_probes import HttpProbe, HttpProbeSender, hello
from mcpfactory_runtime.auth.authorization import resource_metadata_url
from mcpfactory_runtime.oauth.steps_and_metadata import AuthChallenge, origin, read_challenges
from mcpfactory_runtime.urls import is_same_origin

_OAUTH: Final = ("bearer", "dpop")  # schemes of OAuth access tokens
_ENDLESS: Final = 4_102_444_800  # the year 2100 in seconds since 1970
_ALTERED: Final = 8  # number of last characters to change; the very last character may have unused bits


def token_challenges(answer: HttpProbeAnswer) -> list[AuthChallenge]:
    """Return the challenges in an answer that ask for an OAuth access token."""
    return [one for one in read_challenges(answer.headers.get("www-authenticate", "")) if one.scheme in _OAUTH]


def challenge_metadata_url(answer: HttpProbeAnswer) -> str:
    """Return the URL of the metadata in an answer's challenges, or ""."""
    return next(filter(None, (one.parameters.get("resource_metadata") for one in token_challenges(answer))), "")


def probe_authorization(
    url: str,
    credentials: Mapping[str, str],
    spoken: Collection[Lifecycle],
    modern: str,
    seconds_left: Callable[[], float],
) -> dict[str, HttpProbeAnswer]:
    """Send the probes; if the server needs no credentials, send only the first probe.

    Args:
        url: the URL of the endpoint, after redirects.
        credentials: headers for every request.
        spoken: the lifecycles of the server; empty if every request needs credentials.
        modern: the per-request revision of the server.
        seconds_left: returns the seconds until the time limit.
    """
    asker = HttpProbeSender(url, modern, seconds_left)
    asker.run(_DISCOVERY)
    if _is_protected(asker):
        asker.run(row for row in _token_rows(credentials) if not spoken or row.lifecycle in spoken)
    return asker.answers


def _is_protected(asker: HttpProbeSender) -> bool:
    first = asker.answers.get("no-credentials")
    return first is not None and first.status == NEEDS_CREDENTIALS


def _metadata(asker: HttpProbeSender) -> str:
    return challenge_metadata_url(asker.answers["no-credentials"]) or resource_metadata_url(asker.url.rstrip("/"))


def _root_metadata(asker: HttpProbeSender) -> str:
    return resource_metadata_url(origin(asker.url))


def _has_metadata(asker: HttpProbeSender) -> bool:
    return _is_protected(asker) and is_same_origin(asker.url, _metadata(asker))


def _lacks_metadata(asker: HttpProbeSender) -> bool:
    answer = asker.answers.get("metadata")
    return answer is not None and answer.status != 200 and not challenge_metadata_url(asker.answers["no-credentials"])


_DISCOVERY: Final = (
    HttpProbe("no-credentials", "legacy", body=hello(LATEST_HANDSHAKE)),
    HttpProbe("metadata", "legacy", verb="GET", place=_metadata, when=_has_metadata),
    HttpProbe("root-metadata", "legacy", verb="GET", place=_root_metadata, when=_lacks_metadata),
)


def _token_rows(credentials: Mapping[str, str]) -> list[HttpProbe]:
    unsigned = f"{_segment({'alg': 'none', 'typ': 'JWT'})}.{_segment({'sub': 'mcpfactory', 'exp': _ENDLESS})}."
    tokens = {
        "an invalid token": {"Authorization": "Bearer mcpfactory-invalid-token"},
        "a token without signature": {"Authorization": f"Bearer {unsigned}"},
    }
    if credentials:
        tokens["the given credentials, changed at the end,"] = {
            name: corrupt_credentials(one) for name, one in credentials.items()
        }
    rows: list[HttpProbe] = []
    for number, (what, headers) in enumerate(tokens.items(), 1):
        about = f"a request with {what}"
        rows += [
            HttpProbe(f"token-{number}", "legacy", about, headers=headers, body=hello(LATEST_HANDSHAKE)),
            HttpProbe(f"modern-token-{number}", "modern", about, headers=headers, method="server/discover"),
        ]
    return rows


def _segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def corrupt_credentials(value: str) -> str:
    """Return the credentials with other characters at their end."""
    kept, end = value[:-_ALTERED], value[-_ALTERED:]
    head, space, end = end.rpartition(" ")  # keep the name of the scheme
    return kept + head + space + "".join("B" if one == "A" else "A" for one in end)
