"""Package index on loopback: accepts uploads like PyPI, keeps the first of each file, lists files with hashes."""

from __future__ import annotations

import base64
import email.parser
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests import loopback_server
from tests.timeouts import TIMEOUT

TOKEN, REQUEST_TOKEN = "pypi-secret-token", "actions-secret-token"
LOGIN = "Basic " + base64.b64encode(f"__token__:{TOKEN}".encode()).decode()


class Index:
    """Files and requests of the index. `break_at` is the number of the upload that it aborts, from 1.

    `hold_at` is the number of the upload that it delays: it sets `held`, and aborts the upload when `released` is set.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.forms: list[dict[str, str]] = []
        self.yanked = ""
        self.logins: list[str] = []  # credentials of page requests
        self.private = False  # True if its pages require the token
        self.break_at = self.hold_at = 0
        self.answer: tuple[int, bytes] | None = None  # response to every upload, instead of storing it
        self.held, self.released = threading.Event(), threading.Event()
        self.url = ""

    @property
    def settings(self) -> str:
        return f'[publish.pypi]\nurl = "{self.url}/legacy/"\nindex = "{self.url}/simple/"\n'


@contextmanager
def serving() -> Iterator[Index]:
    """Serve the index on a free port until the block ends."""
    index = Index()
    with loopback_server.serving(_Handler, index=index) as index.url:
        yield index


class _Handler(loopback_server.LoopbackHandler):
    index: Index

    def get(self) -> None:
        place, _, query = self.path.partition("?")
        if place == "/_/oidc/audience":
            self.answer(200, b'{"audience": "an-index"}')
            return
        if place == "/identity":  # of GitHub Actions
            known = self.headers.get("Authorization") == f"Bearer {REQUEST_TOKEN}"
            self.answer(200, b'{"value": "job-identity"}') if known and "audience=an-index" in query else self.answer(
                401, b"{}"
            )
            return
        said = self.headers.get("Authorization")
        self.index.logins += [said] if said else []
        if self.index.private and said != LOGIN:
            self.answer(401, b"who are you?")
            return
        project = self.path.strip("/").removeprefix("simple/")
        rows = [
            # Like many indexes, write an unescaped > in an attribute.
            f'<a data-requires-python=">=3.11" {"data-yanked" if self.index.yanked and self.index.yanked in name else ""} href="/files/{name}#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>'
            for name, data in self.index.files.items()
            if name.split("-")[0].replace("_", "-") == project
        ]
        self.answer(200 if rows else 404, "\n".join(rows).encode(), "text/html")

    def post(self) -> None:
        body = self.body()
        if self.path == "/_/oidc/mint-token":
            minted = json.dumps({"token": TOKEN}).encode()
            self.answer(200, minted) if json.loads(body) == {"token": "job-identity"} else self.answer(422, b"{}")
            return
        if self.headers.get("Authorization") != LOGIN:
            self.answer(403, b"Invalid or non-existent authentication information.")
            return
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        form, name, data = {}, "", b""
        for part in email.parser.BytesParser().parsebytes(head + body).get_payload():  # type: ignore[union-attr] # multipart
            if part.get_filename():
                name, data = part.get_filename(), part.get_payload(decode=True)
            else:
                form[part.get_param("name", header="content-disposition")] = part.get_payload(decode=True).decode()
        self.index.forms.append(form)
        if self.index.answer:
            self.answer(*self.index.answer)
            return
        if self.index.hold_at == len(self.index.forms):
            self.index.held.set()
            self.index.released.wait(TIMEOUT)
            self.close_connection = True
        elif self.index.break_at == len(self.index.forms):
            self.close_connection = True
            self.connection.close()
        elif name in self.index.files:
            self.answer(409, b"File already exists.")
        else:
            self.index.files[name] = data
            self.answer(200, b"")
