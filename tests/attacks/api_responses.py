"""Attacks by API responses: bodies that expand, slow codecs and slow texts. Memory and event loop time are limited."""

from __future__ import annotations

import atexit
import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Final

from tests.attacks.http_target import HarmError
from tests.loopback_server import LoopbackHandler, serving

MOST_HELD: Final = 1.0
"""Seconds of processor time; a response must not block the event loop longer. Found attacks blocked it for 4 to 36."""

MOST_MEMORY: Final = 100
"""MiB; maximum memory to read a response: ten times the 10 MB limit of a body. One found attack took 2,300."""

_ROOT: Final = Path(__file__).resolve().parents[2]
_HONEST: Final = b'{"ok": true}'


def _api(status: int, headers: dict[str, str], body: bytes, times: int) -> AbstractContextManager[str]:
    class Handler(LoopbackHandler):
        def get(self) -> None:
            if self.path.startswith("/honest"):
                self.answer(200, _HONEST)
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if times == 1:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                for _ in range(times):
                    self.wfile.write(body)
            except OSError:
                pass  # the client has read enough

    return serving(Handler)


def _asked(
    headers: dict[str, str], body: bytes, times: int = 1, status: int = 200, most_held: float = MOST_HELD
) -> str:
    with _api(status, headers, body, times) as url:
        asking = _asking()
        assert asking.stdin is not None
        assert asking.stdout is not None
        print(url, file=asking.stdin, flush=True)
        found = json.loads(asking.stdout.readline())
    if "ended" in found:
        raise HarmError(f"the process ended: {found['ended']}")
    costs = f"{found['grown']:.0f} MiB, the loop held for {found['held']:.2f} s"
    if found["grown"] > MOST_MEMORY or found["held"] > most_held:
        raise HarmError(costs)
    return f"{costs}: {found['said'][:80]}"


@cache
def _asking() -> subprocess.Popen[str]:
    """Return the process that calls the API; it reads commands from a pipe of this process."""
    command = [sys.executable, "-m", "tests.attacks.call_process"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
    atexit.register(process.communicate)  # closes its input, which ends it
    return process


@cache
def _zeros(megabytes: int, start: bytes = b"", byte: bytes = b" ") -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    block = byte * 1_000_000
    return packer.compress(start) + b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()


def _coded(coding: str, make: Callable[[], bytes], kind: str = "application/json") -> Callable[[Path], str]:
    return lambda _: _asked({"Content-Type": kind, "Content-Encoding": coding}, make())


def _page(body: bytes) -> Callable[[Path], str]:
    """An error, whose title the model would be told. 32 kB of it are looked at: what is not linear holds the loop for 0.7 s on them."""
    return lambda _: _asked({"Content-Type": "text/html"}, body, status=400, most_held=MOST_HELD / 4)


def _failure(body: bytes) -> Callable[[Path], str]:
    return lambda _: _asked({"Content-Type": "application/json"}, body, status=400)


def _plain(kind: str, body: bytes, times: int = 1) -> Callable[[Path], str]:
    return lambda _: _asked({"Content-Type": kind}, body, times)


_CODECS: Final = (
    ("idna", b"a" * 60_000), ("idna", "ü".encode() * 30_000), ("punycode", b"kva" * 60_000), ("punycode", b"a" * 200_000), ("unicode_escape", rb"\N{" + b"A" * 200_000),
    ("raw_unicode_escape", rb"\u0041" * 60_000), ("zlib_codec", zlib.compress(b"0" * 200_000_000)), ("bz2_codec", b"BZh91AY"), ("rot13", b"a" * 60_000),
    ("utf-7", b"+AGE-" * 60_000), ("undefined", b"x"), ("hz", b"~{" * 60_000), ("iso2022_jp_3", b"\x1b$B" * 60_000),
)  # fmt: skip
_ENTITIES: Final = b"".join(b'<!ENTITY a%d "%s">' % (number + 1, b"&a%d;" % number * 10) for number in range(12))
ROWS: Final = {
    "gzip of 150 MB": ("bounded", _coded("gzip", lambda: _zeros(150))),
    "gzip of a text of 150 MB": ("bounded", _coded("gzip", lambda: _zeros(150, b'"'), "text/plain")),
    "gzip within gzip": ("bounded", _coded("gzip, gzip", lambda: gzip.compress(_zeros(150)))),
    "gzip that the header names once, within gzip": ("bounded", _coded("gzip", lambda: gzip.compress(_zeros(150)))),
    "a chain of a hundred codings": ("bounded", _coded(", ".join(["gzip"] * 100), lambda: _zeros(150))),
    "two headers with a coding each": ("bounded", _coded("gzip\r\nContent-Encoding: gzip", lambda: gzip.compress(_zeros(150)))),
    "deflate of 150 MB": ("bounded", _coded("deflate", lambda: zlib.compress(b" " * 150_000_000, 9))),
    "deflate without its header": ("bounded", _coded("deflate", lambda: zlib.compress(b" " * 150_000_000, 9)[2:-4])),
    "many gzip members": ("bounded", _coded("gzip", lambda: gzip.compress(b" " * 100_000) * 3000)),
    "empty gzip members": ("bounded", _coded("gzip", lambda: gzip.compress(b"") * 50_000)),
    "a coding that nobody has": ("refused", _coded("rot13", lambda: b"x")),
    "half a gzip": ("refused", _coded("gzip", lambda: _zeros(150)[:100_000])),
    "a body of 2 GB without a length": ("bounded", _plain("application/json", b" " * 1_000_000, 2000)),
    "a stream of events of 2 GB": ("bounded", _plain("text/event-stream", b"data: x\n" * 100_000, 2000)),
    **{
        f"the charset {codec} {number}": ("bounded", _plain(f"text/plain; charset={codec}", body))
        for number, (codec, body) in enumerate(_CODECS)
    },
    "64 kB of <title": ("bounded", _page(b"<title" * 11_000)),
    "2 MB of <title>": ("bounded", _page(b"<title>" * 300_000)),
    "2 MB of blanks in a title": ("bounded", _page(b"<title " + b" " * 2_000_000)),
    "2 MB of <": ("bounded", _page(b"<" * 2_000_000)),
    "2 MB of comments that begin": ("bounded", _page(b"<!--" * 500_000)),
    "2 MB of entities": ("bounded", _page(b"<title>" + b"&amp" * 500_000)),
    "JSON, a million levels": ("bounded", _plain("application/json", b"[" * 1_000_000)),
    "JSON, levels that close": ("bounded", _plain("application/json", b"[" * 200_000 + b"]" * 200_000)),
    "JSON, objects in objects": ("bounded", _plain("application/json", b'{"a":' * 200_000 + b"1" + b"}" * 200_000)),
    "JSON, a number of a million digits": ("bounded", _plain("application/json", b"9" * 1_000_000)),
    "JSON, a fraction of a million digits": ("bounded", _plain("application/json", b"0." + b"9" * 1_000_000)),
    "JSON, an exponent of nine digits": ("bounded", _plain("application/json", b"1e999999999")),
    "JSON, 9 MB of escapes": ("bounded", _plain("application/json", b'"' + rb"\u0041" * 1_500_000 + b'"')),
    "JSON, a name two hundred thousand times": ("bounded", _plain("application/json", b"{" + b'"a":1,' * 200_000 + b'"a":1}')),
    "JSON, 3 MB of empty lists": ("bounded", _plain("application/json", b"[" + b"[]," * 1_000_000 + b"[]]")),
    "JSON of a failure, a million levels": ("bounded", _failure(b"[" * 1_000_000)),
    "JSON of a failure, a number of a million digits": ("bounded", _failure(b'{"message": ' + b"9" * 1_000_000 + b"}")),
    "JSON of a failure, 200,000 reasons": ("bounded", _failure(b'{"errors": [' + b'{"message": "no"},' * 200_000 + b'"no"]}')),
    "JSON of a failure, reasons in reasons": ("bounded", _failure(b'{"errors":[' * 900 + b'"no"' + b"]}" * 900)),
    "XML, entities that grow": ("bounded", _plain("application/xml", b'<!DOCTYPE a [<!ENTITY a0 "x">' + _ENTITIES + b"]><a>&a12;</a>")),
    "XML, one entity many times": (
        "bounded", _plain("application/xml", b'<!DOCTYPE a [<!ENTITY b "' + b"x" * 100_000 + b'">]><a>' + b"&b;" * 20_000 + b"</a>")
    ),
    "XML, a file": ("bounded", _plain("application/xml", b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>')),
    "XML, two hundred thousand levels": ("bounded", _plain("application/xml", b"<a>" * 200_000)),
    "XML, an element with 100,000 attributes": (
        "bounded", _plain("application/xml", b"<a " + b" ".join(b'b%d="1"' % n for n in range(100_000)) + b"/>")
    ),
    "a type with 60,000 parameters": ("bounded", _plain("text/plain;" + "a=b;" * 10_000, b"x")),
    "a type of quotes that do not end": ("bounded", _plain('text/plain; charset="' + '\\"' * 15_000, b"x")),
    "9 MB of control characters": ("bounded", _plain("text/plain", b"\x1b[31m" * 1_800_000)),
    "9 MB of tags that nobody sees": ("bounded", _plain("text/plain; charset=utf-8", "\U000e0041".encode() * 2_250_000)),
}  # fmt: skip
