"""Authorization: the server as OAuth resource server."""

from __future__ import annotations

from mcpfactory_runtime.revisions import LATEST, R2025_03_26, R2025_06_18, R2025_11_25
from tests.runtime.requirements.model import area, must, should

ROWS = area(
    "auth",
    "basic/authorization",
    (
        must("missing-token", "answers a request without token with 401", "Token Handling"),
        must("invalid-token", "answers an invalid or expired token with 401", "Token Handling"),
        must("malformed-token", "answers a malformed credential with 400", "Error Handling"),
        must("insufficient-scope", "answers a token without the needed scopes with 403", "Error Handling"),
        must(
            "every-request", "looks at the token of every request, sessions and batches included", "Token Requirements"
        ),
        must("query", "takes no token from the address", "Token Requirements"),
        must("signature", "checks signatures by the keys of the issuer, whichever are valid now", "Token Handling"),
        must("expiry", "refuses tokens that are expired or not yet valid", "Token Handling"),
        must("audience", "takes only tokens that were issued for it", "Token Handling", since=R2025_06_18),
        must("issuer", "takes only tokens of the issuers that it names", "Token Handling", since=R2025_06_18),
        must(
            "before-anything",
            "looks at the token before it does anything with the request",
            "Access Token Privilege Restriction",
            since=R2025_06_18,
        ),
        must(
            "no-passthrough",
            "hands no token on, neither upstream nor to handlers or logs",
            "Access Token Privilege Restriction",
            since=R2025_06_18,
        ),
        must(
            "metadata",
            "serves a protected-resource metadata document",
            "Protected Resource Metadata",
            since=R2025_06_18,
        ),
        must(
            "metadata-issuers",
            "names at least one authorization server in it",
            "Protected Resource Metadata",
            since=R2025_06_18,
        ),
        must(
            "challenge",
            "says in WWW-Authenticate where that document is",
            "Protected Resource Metadata",
            since=R2025_06_18,
        ),
        must(
            "well-known",
            "serves it at the well-known path of the endpoint",
            "Protected Resource Metadata",
            since=R2025_11_25,
        ),
        should(
            "challenge-scope", "names the scopes that would be needed in the 401", "Scope Selection", since=R2025_11_25
        ),
        should(
            "insufficient-scope-challenge",
            "says insufficient_scope, all needed scopes and the document in the 403",
            "Scope Challenge",
            since=R2025_11_25,
        ),
        must("hierarchies", "lets a broader scope stand for the narrower ones", "Scope Challenge", since=LATEST),
        should("no-offline-access", "asks for no offline_access", "Refresh Tokens", since=LATEST),
        must(
            "both-lifecycles", "demands the token in the per-request lifecycle, too", "Token Requirements", since=LATEST
        ),
        should("not-on-stdio", "demands no token on stdio", "Protocol Requirements"),
        must("session-owner", "does not take a session for a credential", "Session Hijacking", since=R2025_06_18),
        should(
            "own-server",
            "offers authorization endpoints, or metadata that name them",
            "Authorization Server Metadata",
            until=R2025_03_26,
            note="the runtime is no authorization server: it leads clients that look for one here to its issuer",
        ),
        must("https", "is reached over TLS", "Communication Security", author="whoever deploys it puts TLS in front"),
    ),
    since=R2025_03_26,
    on=("http",),
)
