"""JSON key of a service account, and the assertion that it signs to get a token (RFC 7523 §3, as Google requires it).

PyJWT signs (the extra `google`), as it checks tokens in `auth`; it is loaded when the first token is requested.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.secrets import secret_text

_LIFE: Final = 3600  # seconds, the most that Google grants
_NOT_INSTALLED: Final = (
    "The key of a service account signs for its tokens, and the library for it is not installed.\n"
    "hint: the person who runs this server installs mcpfactory-runtime[google]."
)


@dataclass(frozen=True, slots=True, repr=False)
class ServiceAccount:
    """`token_url` is "" when the key's file does not say where tokens are."""

    email: str
    key: str
    key_id: str
    token_url: str

    def assertion(self, audience: str, scopes: Sequence[str], now: float) -> str:
        """Return the signed statement that is exchanged for a token.

        Raises:
            ToolError: the key cannot be used, or the library for it is not installed.
        """
        try:
            import jwt  # noqa: PLC0415 - an optional library
        except ImportError:
            raise ToolError(_NOT_INSTALLED) from None
        claims: dict[str, Any] = {"iss": self.email, "aud": audience, "iat": int(now), "exp": int(now) + _LIFE}
        claims |= {"scope": " ".join(scopes)} if scopes else {}
        headers = {"kid": self.key_id} if self.key_id else None
        try:
            return jwt.encode(claims, self.key, algorithm="RS256", headers=headers)
        except NotImplementedError:  # PyJWT without cryptography
            raise ToolError(_NOT_INSTALLED) from None
        except (ValueError, TypeError, jwt.PyJWTError):
            raise ToolError(
                "The private key of the service account cannot be read.\n"
                "hint: the person who runs this server takes the JSON key as it was downloaded."
            ) from None


def read_account(variable: str, environ: Mapping[str, str]) -> ServiceAccount | None:
    """Return the account whose JSON key is in a variable or in the file that `<variable>_FILE` names.

    Return None if neither is set.

    Raises:
        ToolError: the file is unreadable or not a service account key.
    """
    text = secret_text(variable, environ)
    if not text or not text.strip():
        return None
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    email, key = (data.get(name) for name in ("client_email", "private_key")) if isinstance(data, dict) else ("", "")
    if not isinstance(data, dict) or not (isinstance(email, str) and isinstance(key, str) and email and key):
        raise ToolError(
            f"{variable} does not hold the JSON key of a service account (with client_email and private_key).\n"
            f"hint: the person who runs this server sets {variable}_FILE to the path of the key that was downloaded."
        )
    return ServiceAccount(email, key, str(data.get("private_key_id") or ""), str(data.get("token_uri") or ""))
