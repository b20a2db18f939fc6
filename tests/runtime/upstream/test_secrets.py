"""Secrets by reference, and files of certificates."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import Operation, SecurityScheme, Upstream
from mcpfactory_runtime.upstream.auth import Credentials, credentials_for
from tests.loopback_server import LoopbackHandler, running

KEY = SecurityScheme("key", "apiKey", ("KEY",), "header", "X-Key")
TLS = SecurityScheme("tls", "mutualTLS", ("CERT", "CERT_KEY"))


def found(scheme: SecurityScheme, **environ: str) -> Credentials:
    return credentials_for(Operation("GET", "/x", security=((scheme.name,),)), {scheme.name: scheme}, environ)


def test_a_secret_may_be_in_a_file_that_is_read_at_every_call(tmp_path: Path) -> None:
    file = tmp_path / "key"
    for value in ("first\n", "second"):
        file.write_text(value)
        assert found(KEY, KEY_FILE=str(file)).headers == (("X-Key", value.strip()),)
    assert found(KEY, KEY="variable", KEY_FILE=str(file)).headers == (("X-Key", "variable"),)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"x" * 70_000])
def test_a_file_that_gives_no_secret_is_named_by_its_variable_alone(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "canary-name"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ToolError, match="KEY") as caught:
        found(KEY, KEY_FILE=str(file))
    assert "canary" not in str(caught.value)


@dataclass(frozen=True)
class Pki:
    """An https API that lets only those in who show a certificate of its authority; paths of PEM files."""

    url: str
    authority: str
    certificate: str
    key: str


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pki]:
    folder = tmp_path_factory.mktemp("pki")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    openssl(*new, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    for name in ("server", "client"):
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE")
        place = ("-addext", "subjectAltName=IP:127.0.0.1")
        openssl(*new, "-subj", f"/CN={name}", *signed, *place, "-keyout", f"{name}.key", "-out", f"{name}.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with running(server) as url:
        paths = [str(folder / name) for name in ("ca.pem", "client.pem", "client.key")]
        yield Pki(url.replace("http", "https"), *paths)


class _Handler(LoopbackHandler):
    def get(self) -> None:
        subject = dict(pair for row in self.connection.getpeercert()["subject"] for pair in row)  # type: ignore[attr-defined]
        self.answer(200, subject["commonName"].encode(), "text/plain")


async def call(pki: Pki, *security: tuple[str, ...], **environ: str) -> str:
    settings = {"MCPFACTORY_BASE_URL": pki.url, **environ}
    async with Upstream("https://a.invalid", [TLS], environ=settings, retry_wait=0) as upstream:
        result = await upstream.send(Operation("GET", "/x", security=security), {})
    return str(result.content)


@pytest.mark.anyio
async def test_a_client_certificate_is_shown_for_operations_that_want_it(pki: Pki) -> None:
    environ = {"MCPFACTORY_CA_FILE": pki.authority, "CERT": pki.certificate, "CERT_KEY": pki.key}
    assert "client" in await call(pki, ("tls",), **environ)
    with pytest.raises(ToolError):
        await call(pki, **environ)


@pytest.mark.anyio
async def test_an_authority_of_ones_own_has_to_be_named(pki: Pki) -> None:
    with pytest.raises(ToolError, match="certificate is not trusted"):
        await call(pki, ("tls",), CERT=pki.certificate, CERT_KEY=pki.key)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "wrong", [{"CERT": "/nowhere"}, {"CERT_KEY": "/nowhere"}, {"CERT_KEY": ""}, {"MCPFACTORY_CA_FILE": "/nowhere"}]
)
async def test_files_that_cannot_be_used_are_told_as_that(pki: Pki, wrong: dict[str, str]) -> None:
    environ = {"MCPFACTORY_CA_FILE": pki.authority, "CERT": pki.certificate, "CERT_KEY": pki.key, **wrong}
    with pytest.raises(ToolError, match="cannot be used"):
        await call(pki, ("tls",), **environ)
