"""Bodies in bounded steps: what is small on the wire and large in memory."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import httpx
import pytest

from mcpfactory_runtime.protocol.decoding import BodyDecoder, iter_decoded


def decoded(data: bytes, coding: str, *, chunk: int = 7) -> bytes:
    decoder = BodyDecoder(coding)
    pieces = [piece for at in range(0, len(data), chunk) for piece in decoder.pieces(data[at : at + chunk])]
    return b"".join(pieces) + decoder.rest()


def raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


TEXT = "".join(f"line {number}\n" for number in range(5000)).encode()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("", TEXT), ("identity", TEXT), ("utf-8", TEXT), ("gzip", gzip.compress(TEXT, mtime=0)), ("X-GZIP", gzip.compress(TEXT, mtime=0)),
        ("deflate", zlib.compress(TEXT)), ("deflate", raw_deflate(TEXT)), ("identity, gzip", gzip.compress(TEXT, mtime=0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_each_coding_is_read_however_it_is_cut(coding: str, body: bytes, chunk: int) -> None:
    assert decoded(body, coding, chunk=chunk) == TEXT


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [
        ("gzip, gzip", gzip.compress(gzip.compress(b"x")), "2 nested content codings"),
        ("br", b"x", "unexpected content coding br"),
        ("gzip", b"no gzip at all", "invalid gzip body"),
        ("deflate", b"\xff\xff\xff", "invalid deflate body"),
    ],
    ids=["two codings", "not asked for", "no gzip", "no deflate"],
)
def test_what_cannot_be_read_says_why(coding: str, body: bytes, words: str) -> None:
    with pytest.raises(httpx.DecodingError, match=words):
        decoded(body, coding)


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", gzip.compress(TEXT, mtime=0)), ("deflate", zlib.compress(TEXT)), ("deflate", raw_deflate(TEXT))],
    ids=["gzip", "zlib", "raw deflate"],
)
@pytest.mark.parametrize("lost", [1, 9, 5000])
def test_a_body_that_breaks_off_is_not_taken_for_a_whole_one(coding: str, body: bytes, lost: int) -> None:
    assert lost < len(body)
    with pytest.raises(httpx.DecodingError, match=f"incomplete {coding} body"):
        decoded(body[:-lost], coding)


def test_a_reader_that_stops_has_kept_little() -> None:
    bomb = gzip.compress(bytes(300_000_000), 9)
    response = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(bomb))
    tracemalloc.start()
    size = 0
    for piece in iter_decoded(response):
        size += len(piece)
        if size > 1_000_000:
            break
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(bomb) < 400_000
    assert peak < 5_000_000
