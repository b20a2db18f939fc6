"""Credentials for upstream calls: headers, query, cookies, AWS signatures, keys of service accounts.

No message or `repr` contains a secret value. botocore, AWS's own library (extra `aws`), signs requests. Smaller
libraries encode paths with an ARN incorrectly.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never
from urllib.parse import urlsplit

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.operation import Operation, SecurityScheme
from mcpfactory_runtime.upstream.secrets import is_variable_set, read_secret_text, secret

Headers = tuple[tuple[str, str], ...]

_REGION: Final = re.compile(r"[.-]((?:af|ap|ca|cn|eu|il|me|mx|sa|us)(?:-[a-z]+)+-\d)\.")
_DEFAULT_REGION: Final = "us-east-1"
_AWS: Final = ".amazonaws.com"


@dataclass(frozen=True, slots=True, repr=False)
class AwsKeys:
    """Keys for a signature. An empty `region` or `service` is read from the host name."""

    key_id: str
    secret: str
    session_token: str = ""
    region: str = ""
    service: str = ""


def sign(keys: AwsKeys, method: str, url: str, headers: Headers, content: bytes | None) -> Headers:
    """Return the headers of a request with a signature, which expires after minutes."""
    try:
        from botocore import auth, awsrequest, credentials  # type: ignore[import-untyped]  # noqa: PLC0415 - a large library, optional, without types
    except ImportError:
        raise ToolError(
            "Requests to this API require AWS Signature Version 4, but the library that signs "
            "requests is not installed.\nhint: ask the person who runs this server to install mcpfactory-runtime[aws]."
        ) from None
    host = urlsplit(url).hostname or ""
    service = keys.service or aws_service(host)
    signer = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    signed = awsrequest.AWSRequest(method, url, dict(headers), content)
    given = credentials.Credentials(keys.key_id, keys.secret, keys.session_token or None)
    signer(given, service, keys.region or aws_region(host)).add_auth(signed)
    return tuple((str(name), str(value)) for name, value in signed.headers.items())


def aws_region(host: str) -> str:
    """Return the region in an AWS host name, or the default region."""
    found = _REGION.search(f".{host}")
    return found[1] if found else _DEFAULT_REGION


def aws_service(host: str) -> str:
    """Return the service in an AWS host name, such as `execute-api` in `abc.execute-api.eu-west-1.amazonaws.com`."""
    if found := _REGION.search(f".{host}"):
        before = f".{host}"[: found.start()].removesuffix(".dualstack")
    else:
        before = host.removesuffix(_AWS) if host.endswith(_AWS) else host.partition(".")[0]
    return before.rpartition(".")[2]


_SHORTEST_SECRET: Final = 6  # minimum characters of a redacted value; a shorter value may occur in ordinary text
_NO_PASSWORDS: Final = frozenset(
    {"api_token", "api-token", "apitoken", "password", "unused", "x-oauth-basic", "x-auth-token"}
)
"""Constant passwords of APIs that expect the key as user name."""
_NOTHING: Final[Mapping[str, Sequence[str]]] = {}
_NEEDED: Final = {"oauth2": 1, "mutualTLS": 1, "awsSigV4": 2}
"""Kind of scheme with optional variables → number of required variables, which come first."""
_NO_TOKENS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """Credentials of a request: names and secret values, by location.

    `secrets`, longest first, are redacted in responses, because APIs may repeat secrets. `tokens` maps scheme names to
    access tokens that can be renewed.
    """

    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    cookies: tuple[tuple[str, str], ...] = ()
    certificate: tuple[str, str] | None = None
    secrets: tuple[str, ...] = ()
    tokens: tuple[tuple[str, str], ...] = ()
    keys: AwsKeys | None = None

    def __repr__(self) -> str:
        names = [name for place in (self.headers, self.query, self.cookies) for name, _ in place]
        return f"Credentials({', '.join(names)})"


NO_CREDENTIALS: Final = Credentials()


def credentials_for(
    operation: Operation, schemes: Mapping[str, SecurityScheme], environ: Mapping[str, str]
) -> Credentials:
    """Return the credentials for the first alternative of `operation.security` that the environment satisfies."""
    return collect_credentials(choose_schemes(operation, schemes, environ), environ)


def choose_schemes(
    operation: Operation,
    schemes: Mapping[str, SecurityScheme],
    environ: Mapping[str, str],
    missing: Mapping[str, Sequence[str]] = _NOTHING,
    hint: str = "",
) -> tuple[SecurityScheme, ...]:
    """Return the schemes of the first alternative of `operation.security` that the environment satisfies.

    An empty alternative, which means no credentials, is considered last. `missing` contains missing variables by scheme
    name, and takes precedence over `unset_variables`. If no alternative is satisfied, raise ToolError with the missing
    environment variables, and with the additional advice in `hint`.
    """
    alternatives = [alternative for alternative in operation.security if alternative]
    wanting: list[str] = []
    for alternative in alternatives:
        known = [schemes[name] for name in alternative if name in schemes]
        without = [
            text
            for scheme in known
            for text in (missing[scheme.name] if scheme.name in missing else unset_variables(scheme, environ))
        ]
        if len(known) == len(alternative) and not without:
            return tuple(known)
        unknown = [f"the credentials of scheme {name!r}" for name in alternative if name not in schemes]
        wanting.append(" and ".join(dict.fromkeys([*without, *unknown])))
    if len(alternatives) < len(operation.security) or not alternatives:
        return ()
    wanted = "; or ".join(dict.fromkeys(wanting))
    raise ToolError(
        f"{operation.method} {operation.path} needs credentials, and the server has none: {wanted} "
        f"{'is' if len(wanting) == 1 and ' and ' not in wanted else 'are'} not set.\n"
        "hint: ask the person who runs this server to set the credentials in the `env` of the client's configuration"
        f"{hint}."
    )


def unset_variables(scheme: SecurityScheme, environ: Mapping[str, str]) -> list[str]:
    """Return the unset variables of a scheme.

    The variable for the key of a certificate is optional. Some APIs expect only a key, so the user name or the password
    of `basic` may be empty.
    """
    if scheme.kind == "basic":
        unset = [name for name in scheme.variables if read_secret_text(name, environ) is None]
        return unset or (
            [] if any(is_variable_set(name, environ) for name in scheme.variables) else list(scheme.variables)
        )
    needed = scheme.variables[: _NEEDED.get(scheme.kind)]
    return [name for name in needed if not is_variable_set(name, environ)]


def collect_credentials(
    schemes: Iterable[SecurityScheme], environ: Mapping[str, str], tokens: Mapping[str, str] = _NO_TOKENS
) -> Credentials:
    """Return the credentials of schemes without missing variables."""
    headers: list[tuple[str, str]] = []
    query: list[tuple[str, str]] = []
    cookies: list[tuple[str, str]] = []
    by_place = {"": headers, "header": headers, "query": query, "cookie": cookies}
    secrets: list[str] = []
    certificate = keys = None
    for scheme in schemes:
        values = _values(scheme, environ, tokens)
        match scheme.kind:
            case "mutualTLS":
                certificate = (values[0], values[1] if len(values) > 1 else "")
                continue
            case "basic":
                pair = b64encode(":".join(values).encode()).decode("ascii")
                headers.append(("Authorization", f"Basic {pair}"))
                secrets.append(pair)
                # If the password is constant or short, the secret is the user name.
                if len(values[1]) >= _SHORTEST_SECRET and values[1] not in _NO_PASSWORDS:
                    values = values[1:]
            case "bearer" | "oauth2":
                token = values[0].removeprefix("Bearer ").strip()
                headers.append(("Authorization", f"Bearer {token}"))
                secrets.append(token)
            case "awsSigV4":
                key_id, key, session_token, region = values
                keys = AwsKeys(key_id, key, session_token, region, scheme.service)
                values = [key_id, key, session_token]  # the region is not secret
            case "apiKey":
                by_place[scheme.place].append((scheme.parameter, values[0]))
            case unknown:
                assert_never(unknown)
        secrets += values
    revealing = sorted({value for value in secrets if len(value) >= _SHORTEST_SECRET}, key=len, reverse=True)
    return Credentials(
        tuple(headers), tuple(query), tuple(cookies), certificate, tuple(revealing), tuple(sorted(tokens.items())), keys
    )


def _values(scheme: SecurityScheme, environ: Mapping[str, str], tokens: Mapping[str, str]) -> list[str]:
    if scheme.kind == "mutualTLS":  # the variables contain paths, to which the checks of `secret` do not apply
        return [environ.get(name, "").strip() for name in scheme.variables]
    if scheme.name in tokens:
        return [tokens[scheme.name]]
    return [secret(name, environ) for name in scheme.variables[: 1 if scheme.kind == "oauth2" else None]]


_LIFETIME: Final = 3600  # seconds; the longest lifetime that Google permits
_NOT_INSTALLED: Final = (
    "The key of the service account must sign a request for a token, and the library that signs requests is not installed.\n"
    "hint: the person who runs this server installs mcpfactory-runtime[google]."
)


@dataclass(frozen=True, slots=True, repr=False)
class ServiceAccount:
    """Service account with its private key."""

    email: str
    key: str
    key_id: str
    token_url: str

    def assertion(self, audience: str, scopes: Sequence[str], now: float) -> str:
        """Return the signed assertion to exchange for a token (RFC 7523)."""
        try:
            import jwt  # noqa: PLC0415 - an optional library
        except ImportError:
            raise ToolError(_NOT_INSTALLED) from None
        claims: dict[str, Any] = {"iss": self.email, "aud": audience, "iat": int(now), "exp": int(now) + _LIFETIME}
        claims |= {"scope": " ".join(scopes)} if scopes else {}
        headers = {"kid": self.key_id} if self.key_id else None
        try:
            return jwt.encode(claims, self.key, algorithm="RS256", headers=headers)
        except NotImplementedError:  # PyJWT is installed without cryptography
            raise ToolError(_NOT_INSTALLED) from None
        except (ValueError, TypeError, jwt.PyJWTError):
            raise ToolError(
                "The private key of the service account cannot be read.\nhint: ask the person who runs this "
                "server to use the JSON key exactly as downloaded."
            ) from None


def read_service_account(variable: str, environ: Mapping[str, str]) -> ServiceAccount | None:
    """Return the account whose JSON key is in a variable or in the file at `<variable>_FILE`, or None."""
    text = read_secret_text(variable, environ)
    if not text or not text.strip():
        return None
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    email, key = (data.get(name) for name in ("client_email", "private_key")) if isinstance(data, dict) else ("", "")
    if not isinstance(data, dict) or not (isinstance(email, str) and isinstance(key, str) and email and key):
        raise ToolError(
            f"{variable} does not contain the JSON key of a service account (with client_email and "
            f"private_key).\nhint: ask the person who runs this server to set {variable}_FILE to the path of the "
            "downloaded key."
        )
    return ServiceAccount(email, key, str(data.get("private_key_id") or ""), str(data.get("token_uri") or ""))
