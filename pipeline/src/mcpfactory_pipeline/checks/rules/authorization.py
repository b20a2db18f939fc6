"""Rules about protected servers at a URL; other servers are exempt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.checks.evidence import Evidence, HttpProbeAnswer
from mcpfactory_pipeline.checks.exchange import NEEDS_CREDENTIALS, STRUCTURED
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, Severity, not_applicable
from mcpfactory_pipeline.checks.transport.authorization_probes import challenge_metadata_url, token_challenges
from mcpfactory_pipeline.checks.transport.http_probes import http_fault
from mcpfactory_runtime.oauth.steps_and_metadata import is_loopback, read_challenges
from mcpfactory_runtime.urls import is_same_origin, split_web_url

RULES: Final = RuleTable()
rule = RULES.rule


def _refusals(evidence: Evidence) -> RuleSubjects[HttpProbeAnswer] | RuleOutcome:
    answer = evidence.authorization.get("no-credentials")
    if answer is None or answer.status != NEEDS_CREDENTIALS:
        return not_applicable("the server needs no credentials")
    return RuleSubjects([answer])


def _tokens(evidence: Evidence) -> RuleSubjects[HttpProbeAnswer] | RuleOutcome:
    return RuleSubjects([one for name, one in evidence.authorization.items() if "token-" in name], once=True)


@rule("authorization.challenge", 3, gate=True, over=_refusals,
      statement="A request without credentials is answered with status 401 and a WWW-Authenticate header.",
      source="RFC 9110 §15.5.2; MCP basic/authorization, Protected Resource Metadata Discovery Requirements",
      hint='add WWW-Authenticate: Bearer resource_metadata="URL of the protected resource metadata"')  # fmt: skip
def _challenge(answer: HttpProbeAnswer) -> Iterator[Fault]:
    challenge = answer.headers.get("www-authenticate", "")
    if not challenge:
        yield http_fault(answer, "the answer with status 401 has no WWW-Authenticate header")
    elif not token_challenges(answer):
        schemes = " and ".join(repr(one.scheme) for one in read_challenges(challenge)) or "missing"
        words = f"the scheme is {schemes}, not Bearer: MCP clients cannot obtain such credentials"
        yield http_fault(answer, words, 2)


@rule("authorization.metadata", 3, gate=True, since=STRUCTURED, over=_refusals,
      statement=("Protected resource metadata is at the URL in WWW-Authenticate, or at the well-known URL. It names the "
                 "server as resource, and at least one authorization server."),
      source="MCP basic/authorization, Authorization Server Location; RFC 9728 §3",
      hint='serve {"resource": "URL of the server", "authorization_servers": ["URL"]} at this URL, without credentials')  # fmt: skip
def _metadata(answer: HttpProbeAnswer, evidence: Evidence) -> Iterator[Fault]:
    found = [evidence.authorization[name] for name in ("metadata", "root-metadata") if name in evidence.authorization]
    served = next((one for one in found if one.status == 200), None)
    if (answer.headers.get("www-authenticate") and not token_challenges(answer)) or not found:
        return  # the server accepts other credentials, or its metadata has another origin
    if served is None:
        named, at = challenge_metadata_url(answer), f"got status {found[0].status}"
        words = f"GET {named} {at}" if named else f"WWW-Authenticate names no URL, and GET of the well-known URL {at}"
        # Severity 2, because MCP authorization is only a SHOULD: clients may get tokens in another way.
        yield http_fault(found[0], f"the metadata is missing: {words}", None if named else 2)
        return
    servers, resource = served.message.get("authorization_servers"), served.message.get("resource")
    if not (isinstance(servers, list) and servers and all(isinstance(one, str) and one for one in servers)):
        yield http_fault(served, "the metadata names no authorization server")
    about = resource if isinstance(resource, str) else ""
    if not _covers(about, answer.url):
        lesser: Severity | None = 2 if _is_public(about, answer.url) else None
        yield http_fault(served, f"the metadata names the resource {resource!r}, not this server", lesser)


def _covers(resource: str, url: str) -> bool:
    """Return True if a resource is this URL or its parent path on the same origin; all loopback names are equal."""
    one, two = split_web_url(resource), urlsplit(url)
    if one is None:
        return False
    local = is_loopback(one.hostname) and is_loopback(two.hostname)
    same = is_same_origin(url, resource) or (local and (one.scheme, one.port) == (two.scheme, two.port))
    return same and f"{two.path.rstrip('/')}/".startswith(f"{one.path.rstrip('/')}/")


def _is_public(resource: str, url: str) -> bool:
    """Return True if a resource may be a loopback server's public URL: https, with the same path."""
    one, two = split_web_url(resource), urlsplit(url)
    return one is not None and is_loopback(two.hostname) and (one.scheme, one.path) == ("https", two.path)


@rule("authorization.token", 5, gate=True, over=_tokens,
      statement="A request with invalid credentials is answered with status 401.",
      source="MCP basic/authorization, Token Handling: servers must validate access tokens; invalid ones get 401",
      hint="verify the signature, issuer, audience and expiry of each token, in every request")  # fmt: skip
def _accepted(answer: HttpProbeAnswer) -> Iterator[Fault]:
    if answer.status != NEEDS_CREDENTIALS:
        lesser: Severity | None = 1 if answer.status >= 400 else None
        yield http_fault(answer, f"{answer.what} got status {answer.status}, not 401", lesser)
