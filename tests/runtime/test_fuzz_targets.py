"""The targets of the search that coverage guides, with inputs that hypothesis makes up: they hold, and they can fail."""

from __future__ import annotations

import importlib
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fuzz import TARGETS
from benchmarks.fuzz.mutation import mutate_json
from mcpfactory_codegen import emit
from mcpfactory_pipeline.clients import edits
from mcpfactory_pipeline.state import folded
from mcpfactory_runtime.auth import tokens
from mcpfactory_runtime.client.sse import SseReader
from mcpfactory_runtime.oauth import challenge
from mcpfactory_runtime.protocol import connection, http, jsonrpc
from mcpfactory_runtime.protocol.framing import LineReader
from mcpfactory_runtime.server.schema import json_schema
from mcpfactory_runtime.server.sealing import Sealer
from mcpfactory_runtime.server.uri_template import UriTemplate
from mcpfactory_runtime.upstream import xml_answers

every = pytest.mark.parametrize("target", [importlib.import_module(f"benchmarks.fuzz.{name}") for name in TARGETS])

# what is broken, and the target that must notice
BREAKAGES = (
    ("framing", LineReader, "rest", lambda _self: b"x"),
    ("framing", SseReader, "feed", lambda _self, data: iter([len(data)])),
    ("messages", jsonrpc, "usable_id", lambda _message: 99),
    ("messages", connection.Connection, "receive", lambda _self, _message: connection.Call(7, "x", {}, None)),  # type: ignore[arg-type]  # it is wrong on purpose
    ("http", http, "_host_name", lambda _host: "localhost"),
    ("http", jsonrpc, "usable_id", lambda _message: jsonrpc.MISSING),
    ("schema", json_schema, "_count", float),
    ("tokens", Sealer, "open", lambda _self, _state, **_bound: {}),
    ("tokens", tokens, "_check_times", lambda _claims, _leeway, _now, signed: {}["exp"]),
    ("tokens", UriTemplate, "match", lambda _self, _uri: {"another": ""}),
    ("answers", xml_answers._AnswerReader, "_value", lambda _self, _name, _element: float("nan")),
    ("answers", challenge, "Challenge", lambda _scheme, _parameters: challenge.bearer_challenge("Bearer a=b")),
    ("documents", emit, "docstring", lambda _lines: '"""'),
    ("histories", folded, "apply", lambda state, _event: state),
    ("configs", edits, "_at", lambda _data, _path: {}),
)


@every
def test_no_seed_breaks_a_promise(target: Any) -> None:
    for seed in target.SEEDS:
        target.one(seed)


@every
@given(st.data())
def test_nothing_near_a_seed_breaks_a_promise(target: Any, data: st.DataObject) -> None:
    seed = data.draw(st.sampled_from(target.SEEDS))
    random = data.draw(st.integers(0, 2**32 - 1))
    mutate = getattr(target, "mutate", mutate_json)
    target.one(mutate(seed, 2048, random, target.WORDS, lambda text, _size: _bent(text, random)))


@pytest.mark.parametrize(("name", "place", "attribute", "wrong"), BREAKAGES)
def test_a_broken_promise_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, place: Any, attribute: str, wrong: Any
) -> None:
    target = importlib.import_module(f"benchmarks.fuzz.{name}")
    monkeypatch.setattr(place, attribute, wrong)
    with pytest.raises(Exception):  # noqa: B017, PT011 - an assertion of the target, or whatever the broken part raises
        list(map(target.one, target.SEEDS))


def _bent(text: bytes, seed: int) -> bytes:
    """The text with a few bytes changed, dropped or doubled."""
    random, changed = Random(seed), bytearray(text)
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(changed))
        changed[at : at + random.randint(0, 2)] = random.choice((b"", b"\n", b'"', b"\xff", b"0", changed[:3]))
    return bytes(changed)
