"""Search with a model of sentences that somebody provides: a tiny one is written here, whose words are as near as the test wants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.server.generated.catalogue import CatalogueError
from mcpfactory_runtime.server.generated.search_model import ModelError, read_model
from mcpfactory_runtime.server.generated.search_vectors import cache_folder
from mcpfactory_runtime.server.generated.search_wordpiece import WordPiece
from tests.rows import rows
from tests.runtime.server.shelf import called, listed, package, row, said

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "book", "##s", "tome", "order", "add", "list", "shelf", "cafe", "."]
WIDTH = 16


def model(folder: Path, *, seed: int = 1, pooling: Any = None, **config: Any) -> Path:
    """Write a model of one layer, in which `tome` means what `book` does."""
    random = np.random.default_rng(seed)
    names: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (20, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    layer = "encoder.layer.0."
    for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        names |= {f"{layer}{part}.weight": (WIDTH, WIDTH), f"{layer}{part}.bias": (WIDTH,)}
    names |= {f"{layer}intermediate.dense.weight": (32, WIDTH), f"{layer}intermediate.dense.bias": (32,)}
    names |= {f"{layer}output.dense.weight": (WIDTH, 32), f"{layer}output.dense.bias": (WIDTH,)}
    for part in ("attention.output.LayerNorm", "output.LayerNorm"):
        names |= {f"{layer}{part}.weight": (WIDTH,), f"{layer}{part}.bias": (WIDTH,)}
    tensors = {name: random.normal(0, 0.05, shape).astype("<f4") for name, shape in names.items()}
    for name, numbers in tensors.items():
        if "LayerNorm.weight" in name:
            numbers[:] = 1
    words = tensors["embeddings.word_embeddings.weight"]
    words[:] = random.normal(0, 1, words.shape)
    words[WORDS.index("tome")] = words[WORDS.index("book")]
    folder.mkdir(parents=True, exist_ok=True)
    header, blob = {}, b""
    for name, numbers in tensors.items():
        header[name] = {"dtype": "F32", "shape": numbers.shape, "data_offsets": [len(blob), len(blob) + numbers.nbytes]}
        blob += numbers.tobytes()
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + blob)
    told = {"model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2}
    told |= {"intermediate_size": 32, "max_position_embeddings": 20, **config}
    (folder / "config.json").write_text(json.dumps(told))
    vocabulary = {"type": "WordPiece", "vocab": {word: number for number, word in enumerate(WORDS)}}
    (folder / "tokenizer.json").write_text(json.dumps({"model": vocabulary, "normalizer": {"lowercase": True}}))
    if pooling:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of three tools; `tome` is no word of any."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tools = [row("list_orders", "GET /orders", "Order"), row("list_books", "GET /books", "Book"), row("shelf", "GET /shelf", "Shelf")]  # fmt: skip
    return package(tmp_path, monkeypatch, tools=tools, mode="search")


def mounted(folder: Path) -> Server:
    server = Server("books")
    server.mount_manifest(folder)
    return server


def first(server: Server, question: str) -> str:
    lines = said(called(server, "search_tools", query=question)).splitlines()
    return lines[1][2:].partition("(")[0] if lines[0].endswith("best first:") else ""


def test_a_model_finds_what_no_word_does(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert first(mounted(folder), "tome") == ""
    monkeypatch.setenv("MCPFACTORY_SEARCH_MODEL", str(model(tmp_path / "model")))
    server = mounted(folder)
    assert first(server, "tome") == "list_books"
    assert first(server, "shelf") == "shelf"


def test_vectors_are_kept_until_the_model_or_a_tool_changes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = model(tmp_path / "model")
    monkeypatch.setenv("MCPFACTORY_SEARCH_MODEL", str(where))
    first(mounted(folder), "tome")
    (kept,) = cache_folder().iterdir()
    before = kept.stat().st_mtime_ns
    np.save(kept, np.roll(np.load(kept), 1, axis=0))  # the answer shows that the file is what is compared
    assert first(mounted(folder), "tome") != "list_books"
    np.save(kept, np.zeros((3, 4), np.float16))
    assert first(mounted(folder), "tome") == "list_books"
    kept.write_bytes(b"damaged")
    assert first(mounted(folder), "tome") == "list_books"
    assert kept.stat().st_mtime_ns != before
    model(where, seed=2)
    assert first(mounted(folder), "tome") == "list_books"
    assert len(list(cache_folder().iterdir())) == 2
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"title": "Shelf"', '"title": "Tome"'))
    first(mounted(folder), "tome")
    assert len(list(cache_folder().iterdir())) == 3


def test_a_model_that_is_gone_leaves_the_words(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = model(tmp_path / "model")
    monkeypatch.setenv("MCPFACTORY_SEARCH_MODEL", str(where))
    server = mounted(folder)
    (where / "model.safetensors").unlink()
    assert first(server, "shelf") == "shelf"


def test_a_wrong_model_ends_the_start_in_search_mode_only(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPFACTORY_SEARCH_MODEL", str(tmp_path / "nothing"))
    with pytest.raises(CatalogueError, match=r"MCPFACTORY_SEARCH_MODEL: .*nothing"):
        listed(mounted(folder))
    monkeypatch.setenv("MCPFACTORY_MODE", "full")
    assert listed(mounted(folder)) == ["list_orders", "list_books", "shelf"]


@rows(
    "file, content, says",
    [
        ("config.json", "{", "config.json"),
        ("config.json", "[]", "not an object"),
        ("tokenizer.json", "[" * 200_000, "recursion"),
        ("model.safetensors", "\x40\r\3\0\0\0\0\0" + "[" * 200_000, "recursion"),
        ("config.json", '{"model_type": "t5"}', "BERT family"),
        ("config.json", '{"model_type": "bert"}', "num_hidden_layers"),
        ("tokenizer.json", '{"model": {"type": "BPE", "vocab": {}}}', "WordPiece"),
        ("tokenizer.json", '{"model": {"type": "WordPiece", "vocab": {"a": 1}}}', "CLS"),
        ("model.safetensors", "", "model.safetensors"),
        ("model.safetensors", "\2\0\0\0\0\0\0\0{}", "missing"),
        ("model.safetensors", "\2\0\0\0\0\0\0\0[]", "header"),
    ],
)
def test_what_is_no_model_is_told_with_its_file(tmp_path: Path, file: str, content: str, says: str) -> None:
    where = model(tmp_path)
    (where / file).write_text(content)
    with pytest.raises(ModelError, match=says) as told:
        read_model(where)
    assert "hint: " in str(told.value)


WORDS_TENSOR = "embeddings.word_embeddings.weight"


@rows(
    "tensor, row",
    [
        (WORDS_TENSOR, {"shape": [len(WORDS) * WIDTH, 1]}),
        (WORDS_TENSOR, {"shape": [len(WORDS) * WIDTH]}),
        (WORDS_TENSOR, {"shape": [-len(WORDS), -WIDTH]}),
        (WORDS_TENSOR, {"shape": [10**30, 10**30]}),
        (WORDS_TENSOR, {"data_offsets": [-900, len(WORDS) * WIDTH * 4 - 900]}),
        (WORDS_TENSOR, {"dtype": ["F32"]}),
        ("embeddings.LayerNorm.bias", {"shape": [float(WIDTH)]}),
        ("embeddings.LayerNorm.bias", {"dtype": "BF16"}),
        ("embeddings.token_type_embeddings.weight", {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}),
    ],
)
def test_a_header_that_does_not_fit_is_told(tmp_path: Path, tensor: str, row: dict[str, Any]) -> None:
    weights = model(tmp_path) / "model.safetensors"
    raw = weights.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:begin])
    header[tensor] = {**header.get(tensor, {}), **row}
    head = json.dumps(header).encode()
    weights.write_bytes(len(head).to_bytes(8, "little") + head + raw[begin:])
    with pytest.raises(ModelError, match=rf"model\.safetensors: {tensor}"):
        read_model(tmp_path)


@rows(
    "text, pieces",
    [
        ("Books", ["book", "##s"]),
        ("tome,order", ["tome", "[UNK]", "order"]),
        ("CAFÉ .", ["cafe", "."]),
        ("bookx", ["[UNK]"]),
        ("shelf\0\u200b \ufffdlist", ["shelf", "list"]),
        ("本book", ["[UNK]", "book"]),
        ("book" + "s" * 96, ["book", *["##s"] * 17]),
        ("book" + "s" * 97, ["[UNK]"]),
        ("", []),
    ],
)
def test_text_is_cut_into_the_longest_pieces(text: str, pieces: list[str]) -> None:
    cutter = WordPiece({word: number for number, word in enumerate(WORDS)}, lowercase=True)
    numbers = cutter.numbers(text, 20)
    assert [WORDS[number] for number in numbers] == ["[CLS]", *pieces, "[SEP]"]
    assert len(cutter.numbers("book " * 50, 20)) == 20
