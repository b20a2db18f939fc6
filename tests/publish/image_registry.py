"""An image registry on loopback: the routes of the distribution specification that pushes and pulls need, and its refusals.

It takes a manifest only when all that it names is there, and a blob only when it is what its digest says.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

USER, PASSWORD = "pusher", "registry-secret-password"
TOKEN = "registry-secret-token"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Images:
    """What the registry holds and was asked. `auth` is "", "basic" or "bearer"; `break_at` breaks that upload off, from 1."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.uploads: list[str] = []
        self.asked: list[str] = []
        self.auth = ""
        self.break_at = 0
        self.lies = ""
        self.elsewhere: list[str | None] | None = None  # where blobs are stored apart: the credentials that came there
        self.host = ""

    def blob(self, data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.blobs[digest] = data
        return digest

    def base(self, *, env: tuple[str, ...] = ("PATH=/usr/bin", "PYTHON_VERSION=3.11.7")) -> str:
        """Puts a small image there, as a base; gives its reference by digest."""
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("base.txt"))
        layer = gzip.compress(stream.getvalue(), mtime=0)
        diff = f"sha256:{hashlib.sha256(stream.getvalue()).hexdigest()}"
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Env": env, "User": "0"},
                "rootfs": {"type": "layers", "diff_ids": [diff]},
            }
        ).encode()
        manifest = json.dumps(
            {
                "schemaVersion": 2, "mediaType": _MANIFEST,
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": self.blob(config), "size": len(config)},
                "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": self.blob(layer), "size": len(layer)}],
            }
        ).encode()  # fmt: skip
        digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        self.manifests[digest] = manifest
        return f"{self.host}/base/python@{digest}"


@contextmanager
def images_served() -> Iterator[Images]:
    """The registry, on a free port, for the block."""
    images = Images()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"images": images}))
    images.host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield images
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    images: Images

    def do_HEAD(self) -> None:
        self._get()

    def do_GET(self) -> None:
        if self.path.startswith("/token?"):
            asked = parse_qs(urlsplit(self.path).query)
            good = self.headers.get("Authorization") == _basic() and asked["service"] == ["registry"]
            return self._answer(200, json.dumps({"token": TOKEN}).encode()) if good else self._answer(401)
        if self.path.startswith("/store/"):
            assert self.images.elsewhere is not None
            self.images.elsewhere.append(self.headers.get("Authorization"))
            return self._answer(200, self.images.blobs[self.path.removeprefix("/store/")])
        return self._get()

    def _get(self) -> None:
        if not self._allowed():
            return None
        name = self.path.rsplit("/", 1)[-1]
        if "/manifests/" in self.path:
            body = self.images.manifests.get(name)
            headers = {"Content-Type": _MANIFEST}
            if body is not None:
                headers["Docker-Content-Digest"] = f"sha256:{hashlib.sha256(body).hexdigest()}"
        else:
            body, headers = self.images.blobs.get(name), {}
            if self.images.elsewhere is not None and self.command == "GET":
                port = self.images.host.partition(":")[2]
                return self._answer(307, headers={"Location": f"http://localhost:{port}/store/{name}"})
            if body is not None and self.images.lies == name:
                body = b"x" * len(body)
        return self._answer(200 if body is not None else 404, body or b"", headers)

    def do_POST(self) -> None:
        if self._allowed():
            self._answer(202, headers={"Location": f"{self.path}some-upload?state=1"})

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._allowed():
            return None
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        if "/manifests/" in self.path:
            named = re.findall(r"sha256:[0-9a-f]{64}", body.decode())
            if set(named) - set(self.images.blobs):
                return self._answer(404, b"MANIFEST_BLOB_UNKNOWN")
            self.images.manifests[digest] = self.images.manifests[self.path.rsplit("/", 1)[-1]] = body
            return self._answer(201)
        if parse_qs(urlsplit(self.path).query).get("digest") != [digest]:
            return self._answer(400, b"DIGEST_INVALID")
        self.images.uploads.append(digest)
        if len(self.images.uploads) == self.images.break_at:
            return self._answer(503, b"out of order")
        self.images.blobs[digest] = body
        return self._answer(201)

    def _allowed(self) -> bool:
        self.images.asked.append(f"{self.command} {self.path}")
        wanted = {"": None, "basic": _basic(), "bearer": f"Bearer {TOKEN}"}[self.images.auth]
        if wanted is None or self.headers.get("Authorization") == wanted:
            return True
        realm = f'Bearer realm="http://{self.images.host}/token",service="registry",scope="repository:x:push"'
        self._answer(401, headers={"WWW-Authenticate": realm if self.images.auth == "bearer" else 'Basic realm="x"'})
        return False

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        pass


def _basic() -> str:
    return "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
