"""Rules over addresses: who can read or change what goes over the wire, and who can reach a server that is started here."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.audit.mentions import shown_url
from mcpfactory_pipeline.audit.rule import AuditedServer, AuditRule, Said, each_server

__all__ = ["RULES", "is_local"]

_TUNNELS: Final = (
    "ngrok.io", "ngrok.app", "ngrok.dev", "ngrok-free.app", "ngrok-free.dev", "trycloudflare.com", "loca.lt", "localtunnel.me",
    "serveo.net", "lhr.life", "localhost.run", "pinggy.link", "pinggy.io", "devtunnels.ms", "bore.pub", "serveousercontent.com", "zrok.io",
)  # fmt: skip
_OFF: Final = {
    "NODE_TLS_REJECT_UNAUTHORIZED": ("0",), "PYTHONHTTPSVERIFY": ("0",), "GIT_SSL_NO_VERIFY": ("1", "true"), "SSL_VERIFY": ("0", "false"),
    "VERIFY_SSL": ("0", "false", "no"), "NPM_CONFIG_STRICT_SSL": ("false",), "UV_INSECURE_HOST": None, "CURL_INSECURE": ("1", "true"),
    "JIRA_SSL_VERIFY": ("false", "0"), "CONFLUENCE_SSL_VERIFY": ("false", "0"),
}  # fmt: skip
_OFF_OPTIONS: Final = re.compile(
    r"--(insecure|no-check-certificate|skip-tls-verify|no-verify-ssl|disable-ssl-verification|ignore-https-errors|allow-insecure-host|trusted-host|tls-skip-verify)(=true)?$",
    re.IGNORECASE,
)
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", "[::]", "*"})  # noqa: S104 - looked for, not listened on
_HOSTS: Final = re.compile(r"--?(host|bind|address|listen|http-host|bind-address|listen-address|h)$", re.IGNORECASE)
_HOST_VARIABLES: Final = re.compile(r"(.*_)?(HOST|BIND|BIND_ADDRESS|LISTEN|LISTEN_ADDRESS)$")


def is_local(host: str) -> bool:
    """Whether a host is this machine."""
    if host in {"localhost", "host.docker.internal"} or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_private(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".home.arpa"))


def _plain(one: AuditedServer) -> bool:
    address = one.server.address
    return address.lower().startswith("http://") and bool(_host(address)) and not is_local(_host(address))


def _plain_http(one: AuditedServer) -> Iterator[Said]:
    if _plain(one):
        host = _host(one.server.address)
        if _is_private(host):
            yield f"{host} of this network is asked without encryption", 2
        else:
            yield f"{shown_url(one.server.address)} is asked without encryption"


def _clear_token(one: AuditedServer) -> Iterator[Said]:
    named = [name for name in one.server.headers if re.search(r"auth|key|token|secret|cookie", name, re.IGNORECASE)]
    named += [
        "an argument of the bridge"
        for secret in one.server.secrets
        if secret.place == "arguments" and not one.server.url
    ][:1]
    if _plain(one) and named:
        yield f"{', '.join(named)} is sent without encryption"


def _tls_off(one: AuditedServer) -> Iterator[Said]:
    for name, value in one.server.environ.items():
        values = _OFF.get(name.upper(), ())
        if values is None or value.strip().lower() in values:
            yield f"{name} switches off the check of certificates"
    for word in one.server.words:
        if _OFF_OPTIONS.match(word):
            yield f"{word} switches off the check of certificates"


def _listens(one: AuditedServer) -> Iterator[Said]:
    words, run = one.server.words, one.server.origin.run
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        value = value if equals else words[at + 1] if at + 1 < len(words) else ""
        if _HOSTS.match(name) and value.strip() in _EVERYWHERE and run is None:
            yield f"{name} {value} lets every machine of the network call it"
    for name, value in one.server.environ.items():
        if _HOST_VARIABLES.fullmatch(name.upper()) and value.strip() in _EVERYWHERE and run is None:
            yield f"{name}={value} lets every machine of the network call it"
    for port in run.options.get("--publish", ()) if run else ():
        if not re.match(r"(127\.|localhost|\[::1\])", port):
            yield f"port {port} of the container is open to every machine of the network"


def _tunnel(one: AuditedServer) -> Iterator[Said]:
    host = _host(one.server.address)
    if any(host == name or host.endswith(f".{name}") for name in _TUNNELS):
        yield f"{host} is a tunnel: its name goes to somebody else when it is closed"


def _sse(one: AuditedServer) -> Iterator[Said]:
    server = one.server
    if server.url and (server.transport.lower() == "sse" or _path(server.url).endswith("/sse")):
        yield "the transport HTTP+SSE is obsolete"


def _path(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""


RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "network.plain-http", 3,
        statement="A server on another machine is asked over https.",
        reason="whoever is on the way reads calls and answers, and may give other answers",
        hint="use its https address", check=each_server(_plain_http),
    ),
    AuditRule(
        "network.clear-token", 5,
        statement="No token travels without encryption.",
        reason="whoever is on the way has it",
        hint="use its https address, and have a new token made", check=each_server(_clear_token),
    ),
    AuditRule(
        "network.tls-off", 5,
        statement="Certificates are checked.",
        reason="whoever is on the way can be the server",
        hint="add the certificate of your own authority instead: NODE_EXTRA_CA_CERTS, SSL_CERT_FILE", check=each_server(_tls_off),
    ),
    AuditRule(
        "network.listens", 3,
        statement="A server that a client starts listens for this machine only.",
        reason="others call its tools, with the rights and secrets of the user",
        hint="listen on 127.0.0.1; publish a port as 127.0.0.1:PORT:PORT", check=each_server(_listens),
    ),
    AuditRule(
        "network.tunnel", 3,
        statement="No address is that of a tunnel.",
        reason="such names are given to the next who asks, who is then the server",
        hint="give the server a name of your own", check=each_server(_tunnel),
    ),
    AuditRule(
        "network.sse", 1,
        statement="A remote server speaks Streamable HTTP.",
        reason="clients drop the older transport, and it has no sessions that end",
        hint="ask its vendor for the address that ends with /mcp", check=each_server(_sse),
    ),
)  # fmt: skip
