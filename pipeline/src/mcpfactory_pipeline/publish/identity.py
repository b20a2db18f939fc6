"""The identity that a CI provider gives a job, and tokens in exchange for it: publishing without a secret. Nothing is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from mcpfactory_pipeline.base.errors import ConfigError, PublishError, TargetError
from mcpfactory_pipeline.publish.http import HttpClient, HttpResponse, read_json, require_url

__all__ = ["JSON", "exchange_token", "job_identity", "text_field"]

JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}


def job_identity(wire: HttpClient, audience: str, environ: Mapping[str, str], variable: str = "") -> str:
    """Return what the provider says about this job, signed and made out to `audience`.

    GitHub Actions is asked for it; GitLab sets the `variable` that its `id_tokens` names.

    Raises:
        ConfigError: the job has no identity.
    """
    if given := environ.get(variable, ""):
        return given
    url, token = environ.get("ACTIONS_ID_TOKEN_REQUEST_URL", ""), environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
    if not url or not token:
        raise ConfigError(
            "this job has no identity: neither GitHub Actions nor another provider gives one",
            hint="permissions: id-token: write in the workflow, or another auth",
        )
    require_url(url, "ACTIONS_ID_TOKEN_REQUEST_URL")
    wanted = f"{url}{'&' if '?' in url else '?'}audience={quote(audience, safe='')}"
    answer = wire.request("GET", wanted, headers={"Authorization": f"Bearer {token}", "Accept": "application/json"})
    return text_field(answer, "value", url.partition("?")[0])


def exchange_token(wire: HttpClient, url: str, body: Mapping[str, str] | None, field: str) -> str:
    """Return the token that a target issues for another one.

    Raises:
        PublishError: it issues none.
    """
    answer = wire.request("POST", url, headers=JSON, content=json.dumps(body).encode() if body else None)
    return text_field(answer, field, url)


def text_field(answer: HttpResponse, field: str, url: str) -> str:
    """Return a text in an answer; where there is none the body is not shown, for it may hold a token."""
    if answer.status_code >= 500 or answer.status_code == 429:
        raise TargetError(f"{url} broke: it answered {answer.status_code}", hint="publish again")
    found = read_json(answer) if answer.status_code < 300 else None
    if not isinstance(found, dict) or not isinstance(found.get(field), str):
        raise PublishError(
            f"{url} gave no {field}: it answered {answer.status_code}",
            hint="is the login, or the publisher that is registered there, the right one?",
        )
    return str(found[field])
