"""Test sites on loopback, and a check for a working browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryDirectory

__all__ = ["Site", "missing"]

Answer = tuple[int, dict[str, str], str]


class Site:
    """A site; `asked` lists the requests with bodies, `pages` has the responses."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.pages: dict[str, Answer] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                if self.path != "/favicon.ico":
                    site.asked.append(f"{self.command} {self.path} {body}".strip())
                status, headers, text = site.pages.get(self.path.partition("?")[0], (404, {}, "nothing here"))
                self.send_response(status)
                for name, value in {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(text.encode())), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(ConnectionError):
                    self.wfile.write(text.encode())

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Suppress the request log."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.place = f"127.0.0.1:{self.http.server_port}"
        self.url = f"http://{self.place}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self) -> None:
        """Stop the site."""
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def missing(program: str | None = None) -> str:
    """Return why no browser starts here, or "". This does not use the code under test."""
    found = program or next((place for name in ("chromium", "chromium-browser", "google-chrome") if (place := shutil.which(name))), None)
    if found is None:
        return "Chromium is not installed here (apt-get install chromium)"
    with TemporaryDirectory() as home:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={home}/data", "--dump-dom", "about:blank"]
        try:
            done = subprocess.run([found, *options], capture_output=True, check=False, timeout=120, env={**os.environ, "HOME": home})
        except subprocess.TimeoutExpired:
            return "Chromium does not start here: timed out after 120 s"
    if done.returncode == 0 and b"<html>" in done.stdout:
        return ""
    last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit {done.returncode}"])[-1]
    return f"Chromium does not start here (a sandbox without Unix sockets keeps it from that): {last[:200]}"
