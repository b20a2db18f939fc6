"""Access control of the dashboard: tokens, sessions, single-use tickets for actions, and an authenticating proxy.

Secrets are stored and looked up by hash. A memory dump or a timing attack therefore reveals no secret.

A proxy can log people in, and send their names in a header. This header is accepted only in requests with the proxy's
shared secret. A loopback address of a sender proves nothing, because every local program has such an address.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from mcpfactory_pipeline.base.errors import ConfigError, PipelineError
from mcpfactory_pipeline.base.text import printable
from mcpfactory_pipeline.plan.policy import normalize_person_name
from mcpfactory_runtime.urls import split_web_url

TOKEN_VARIABLE: Final = "MCPFACTORY_DASHBOARD_TOKEN"  # noqa: S105 - the name of a variable
_MIN_TOKEN: Final = 16  # minimum number of characters of a token
_HINT: Final = "create a token with: python -c 'import secrets; print(secrets.token_urlsafe())'"
_SESSION_SECONDS: Final = 8 * 3600.0  # seconds until a session expires
_TICKET_SECONDS: Final = 600.0  # seconds until a confirmation form expires
_MAX_SESSIONS: Final = 200
# Maximum number of tickets per session. A page with 60 decisions needs 60 tickets.
_MAX_TICKETS: Final = 256
# Maximum number of used tickets that a session remembers, to detect a second use.
_MAX_USED: Final = 1024
_PREFIX: Final = 4  # characters of a token that identify a group of guesses
_MAX_WRONG: Final = 10  # maximum number of wrong tokens with one prefix from one address in `_WRONG_SECONDS`
_WRONG_SECONDS: Final = 60.0
_TOKEN: Final = "the token that you logged in with (--token-file, or MCPFACTORY_DASHBOARD_TOKEN)"  # noqa: S105 - a message
_PROXY: Final = "the proxy of the dashboard, which logged you in (--proxy-header)"

Clock = Callable[[], float]


class AccessError(PipelineError):
    """Error for denied access. `status` is the HTTP status, and `ways` are links (text, path) to next steps."""

    title: ClassVar[str] = "Not allowed"

    def __init__(self, message: str, *, hint: str, status: int = 403) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.ways: tuple[tuple[str, str], ...] = ()


class UsedTicketError(AccessError):
    """Error for a form that was submitted twice. Only the first submission has an effect."""

    title: ClassVar[str] = "Confirmed already"


def read_access_tokens(
    environ: Mapping[str, str], file: Path | None, owner: str, *, needed: bool = True
) -> dict[str, str]:
    """Return the tokens of permitted people by name.

    `owner` has the token in the environment variable. The token file has a line `name: token` for each person. If a
    proxy authenticates people, `needed` can be False.

    Raises:
        ConfigError: other users may read the file, a person has two names, or a token is missing, too short or
            duplicated.
    """
    people: dict[str, str] = {}
    if file is not None:
        people |= _in_file(file)
    if token := environ.get(TOKEN_VARIABLE, "").strip():
        # the owner may also be in the file
        others = {name: known for name, known in people.items() if name != owner}
        people = _with(others, owner, token, TOKEN_VARIABLE)
    if not people and needed:
        raise ConfigError(
            "dashboard actions are not possible: no token found",
            hint=f"set {TOKEN_VARIABLE}, or pass --token-file FILE; {_HINT}",
        )
    for name, token in people.items():
        if len(token) < _MIN_TOKEN:
            raise ConfigError(f"the token of {name} has fewer than {_MIN_TOKEN} characters", hint=_HINT)
    if len(set(people.values())) < len(people):
        raise ConfigError("two people have the same token", hint=_HINT)
    return people


def _with(people: Mapping[str, str], name: str, token: str, where: str) -> dict[str, str]:
    """Add a person. Names that differ only in case or spaces belong to one person."""
    same = next((one for one in people if normalize_person_name(one) == normalize_person_name(name)), None)
    if same is not None or not normalize_person_name(name):
        who, of = printable(name), f" and {printable(same)}" if same not in {None, name} else ""
        if same is None:
            raise ConfigError(
                f"{where} has an invalid name: {who!r} has no letter, digit or symbol",
                hint="write the line as `name: token`",
            )
        raise ConfigError(
            f"{where} names the same person again: {who}{of}",
            hint=(
                "remove one of the lines; names that differ only in case, spaces or invisible characters belong to the "
                "same person"
            ),
        )
    return {**people, name: token}


def _in_file(file: Path) -> dict[str, str]:
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{file} cannot be read: {error}", hint="write one line of the form `name: token` per person"
        ) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{file} can be read or written by other users", hint=f"chmod 600 {file}")
    people: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, token = (part.strip() for part in line.partition(":"))
        if not (name and colon and token):
            raise ConfigError(
                f"line {number} of {file} does not have the form `name: token`", hint="write the line as `name: token`"
            )
        people = _with(people, name, token, f"line {number} of {file}")
    return people


@dataclass(frozen=True, slots=True)
class ActionTicket:
    """Confirmation of one action. `seen` has the values that the user saw."""

    about: str
    until: float
    seen: Mapping[str, str]


@dataclass(slots=True)
class DashboardSession:
    """Session of an authenticated person.

    Attributes:
        message: text that the next page shows.
    """

    actor: str
    until: float
    source: str = _TOKEN
    proxied: bool = False
    message: str = ""
    tickets: dict[str, ActionTicket] = field(default_factory=dict)
    used: dict[str, None] = field(default_factory=dict)


class DashboardAccess:
    """People and their sessions. Use the object only in one event loop."""

    def __init__(self, people: Mapping[str, str], clock: Clock = time.monotonic) -> None:
        self._people = {name: _hash(token) for name, token in people.items()}
        self._clock = clock
        self._wrong: dict[tuple[str, str], list[float]] = {}  # (address, token prefix) → times of wrong tokens
        self._sessions: dict[str, DashboardSession] = {}
        # Person → session for programs, which have no cookies.
        self._bearers: dict[str, DashboardSession] = {}
        self._named: dict[str, DashboardSession] = {}  # person → session, for people whom the proxy authenticated

    def login(self, token: str, address: str = "") -> str:
        """Return the secret of a new session."""
        actor = self._person(token, address)
        now = self._clock()
        self._sessions = {key: one for key, one in self._sessions.items() if one.until > now}
        while len(self._sessions) >= _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret = secrets.token_urlsafe(32)
        self._sessions[_hash(secret)] = DashboardSession(actor, now + _SESSION_SECONDS)
        return secret

    @property
    def has_tokens(self) -> bool:
        """Return True if token login is available."""
        return bool(self._people)

    def session(self, secret: str) -> DashboardSession | None:
        """Return the session of a browser, or None if it is unknown or expired."""
        found = self._sessions.get(_hash(secret))
        return found if found is not None and found.until > self._clock() else None

    def logout(self, secret: str) -> None:
        """End a session and invalidate its tickets."""
        self._sessions.pop(_hash(secret), None)

    def bearer(self, token: str, address: str = "") -> DashboardSession:
        """Return the session of a program that sends its token with each request."""
        actor = self._person(token, address)
        return self._bearers.setdefault(actor, DashboardSession(actor, 0.0))

    def named(self, person: str) -> DashboardSession:
        """Return the session of a person whom the proxy authenticated.

        All browsers of this person share the session.
        """
        session = self._named.pop(person, None) or DashboardSession(person, 0.0, source=_PROXY, proxied=True)
        while len(self._named) >= _MAX_SESSIONS:
            del self._named[next(iter(self._named))]
        self._named[person] = session  # the least recently used session is dropped first
        return session

    def ticket(self, session: DashboardSession, *about: object, seen: Mapping[str, str] | None = None) -> str:
        """Return a single-use ticket for one action."""
        ticket = secrets.token_urlsafe(32)
        while len(session.tickets) >= _MAX_TICKETS:
            del session.tickets[next(iter(session.tickets))]
        named = json.dumps(about, sort_keys=True)
        session.tickets[_hash(ticket)] = ActionTicket(named, self._clock() + _TICKET_SECONDS, dict(seen or {}))
        return ticket

    def use_ticket(self, session: DashboardSession, ticket: str, *about: object) -> Mapping[str, str]:
        """Invalidate a ticket, and return the values that the user saw.

        Raises:
            UsedTicketError: the ticket was already used.
            AccessError: the ticket has expired, or belongs to another action.
        """
        key = _hash(ticket)
        if key in session.used:
            raise UsedTicketError(
                "you have already confirmed this action",
                hint="check the result in the history: only the first confirmation counts",
            )
        found = session.tickets.pop(key, None)
        if found is None or found.until <= self._clock() or found.about != json.dumps(about, sort_keys=True):
            raise AccessError(
                "nothing was done: the confirmation has expired, belongs to another person or does not match the checked action",
                hint="open the page of the action again to see the current state",
            )
        while len(session.used) >= _MAX_USED:
            del session.used[next(iter(session.used))]
        session.used[key] = None
        return found.seen

    def _person(self, token: str, address: str) -> str:
        """Return the person of a token.

        Wrong tokens are counted per address and token prefix. So people behind one proxy do not lock each other out.
        """
        now, key = self._clock(), (address, _hash(token[:_PREFIX]))
        wrong = [at for at in self._wrong.pop(key, []) if at > now - _WRONG_SECONDS]
        if len(wrong) >= _MAX_WRONG:
            self._wrong[key] = wrong
            raise AccessError("too many wrong tokens", hint=f"wait {_WRONG_SECONDS:g} s", status=429)
        given, found = _hash(token), ""
        for name, known in self._people.items():  # compare with every token, so that timing reveals nothing
            if hmac.compare_digest(given, known):
                found = name
        if not found:
            while len(self._wrong) >= _MAX_USED:
                del self._wrong[next(iter(self._wrong))]
            self._wrong[key] = [*wrong, now]
            raise AccessError("unknown token", hint="ask the operator of the dashboard for your token", status=401)
        return found


def _hash(secret: str | bytes) -> str:
    data = secret.encode("utf-8", "surrogatepass") if isinstance(secret, str) else secret
    return hashlib.sha256(data).hexdigest()


PROXY_SECRET_VARIABLE: Final = "MCPFACTORY_DASHBOARD_PROXY_SECRET"  # noqa: S105 - the name of a variable
SECRET_HEADER: Final = "X-MCPFactory-Proxy-Secret"  # noqa: S105 - the name of a header
_MIN_SECRET: Final = 16  # minimum number of characters of the proxy's secret
_MAX_NAME: Final = 100  # maximum number of characters of a person's name
_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
# Headers with another meaning. A proxy must not send the person's name in such a header.
_TAKEN: Final = frozenset(
    {
        "accept", "authorization", "connection", "content-length", "content-type", "cookie", "forwarded", "host", "origin", "referer", "user-agent",
        "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", SECRET_HEADER.lower(),
    }
)  # fmt: skip

RawHeaders = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class ProxiedCaller:
    """The sender of a request."""

    person: str = ""
    proxied: bool = False


@dataclass(frozen=True, slots=True)
class TrustedProxy:
    """A trusted proxy: the header with the person's name, and the hash of the shared secret."""

    header: str
    secret: str

    def caller(self, headers: RawHeaders) -> ProxiedCaller:
        """Return the sender of a request.

        Raises:
            AccessError: the request does not come from the proxy, or the name is invalid.
        """
        sent = [(name.lower(), value) for name, value in headers]
        named, secrets = _values(sent, self.header), _values(sent, SECRET_HEADER)
        if not named and not secrets:
            return ProxiedCaller()
        if len(secrets) != 1 or not hmac.compare_digest(_hash(secrets[0]), self.secret):
            raise AccessError(
                f"the request contains {self.header}, but was not sent by the proxy of this dashboard",
                hint="open the dashboard through its proxy; for operators: docs/how-to/dashboard.md#behind-a-proxy",
            )
        if len(named) > 1:
            raise AccessError(
                f"{self.header} appears more than once: the proxy forwards the header that clients send",
                hint="configure the proxy to replace the header instead of adding to it",
            )
        return ProxiedCaller(_person(self.header, named[0]) if named else "", proxied=True)


def read_proxy(environ: Mapping[str, str], header: str) -> TrustedProxy:
    """Return a proxy that sends the person's name in `header`."""
    if not _HEADER.fullmatch(header) or header.lower() in _TAKEN:
        raise ConfigError(
            f"{header!r} is not a valid header for user names",
            hint="use a header such as --proxy-header X-Forwarded-User",
        )
    secret = environ.get(PROXY_SECRET_VARIABLE, "").strip()
    if len(secret) < _MIN_SECRET:
        raise ConfigError(
            f"{PROXY_SECRET_VARIABLE} has fewer than {_MIN_SECRET} characters"
            if secret
            else f"{PROXY_SECRET_VARIABLE} is not set: any program on this machine could claim any user name",
            hint=(
                f"set the variable to a secret value, and configure the proxy to send this value in {SECRET_HEADER}; "
                "create a value with: python -c 'import secrets; print(secrets.token_urlsafe())'"
            ),
        )
    return TrustedProxy(header, _hash(secret.encode()))


def public_origin(url: str) -> str:
    """Return the origin of a public URL in the form that browsers send."""
    if not url:
        return ""
    parts = split_web_url(url)
    if parts is None or any((parts.username, parts.password, parts.query, parts.fragment, parts.path.strip("/"))):
        raise ConfigError(
            f"{url!r} is not a valid URL of a dashboard",
            hint="use a URL such as --public-url https://factory.example.org",
        )
    host, port = (parts.hostname or "").lower(), parts.port
    usual = {"http": 80, "https": 443}[parts.scheme]
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + (f":{port}" if port and port != usual else "")


def _values(sent: Iterable[tuple[bytes, bytes]], header: str) -> list[bytes]:
    wanted = header.lower().encode()
    return [value for name, value in sent if name == wanted]


def _person(header: str, value: bytes) -> str:
    """Return a valid name of a person.

    Commas are refused, because a client may have added another name to the header.
    """
    try:
        name = value.decode("utf-8").strip()
    except UnicodeDecodeError:
        name = "\n"
    if not name.isprintable() or "," in name or len(name) > _MAX_NAME:
        raise AccessError(
            f"the value of {header} is not a valid user name",
            hint=f"send at most {_MAX_NAME} characters, without a comma",
        )
    return name
