"""Search with a model of sentences that somebody provides: a tiny one is written here, whose words are as near as the test wants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.server.generated.catalogue import CatalogueError
from mcpfactory_runtime.server.generated.search_encoder import Encoder
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


def test_a_model_names_no_tool_of_another_group(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["tools"][0]["handler"] = "orders:anything"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.setenv("MCPFACTORY_SEARCH_MODEL", str(model(tmp_path / "model")))
    found = said(called(mounted(folder), "search_tools", query="tome", group="orders"))
    assert "list_orders" in found
    assert "list_books" not in found


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


def test_the_vectors_of_another_pooling_are_not_taken(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = model(tmp_path / "model", pooling={"pooling_mode_cls_token": True})
    monkeypatch.setenv("MCPFACTORY_SEARCH_MODEL", str(where))
    first(mounted(folder), "tome")
    (where / "1_Pooling" / "config.json").unlink()
    first(mounted(folder), "tome")
    assert len(list(cache_folder().iterdir())) == 2


def test_no_search_waits_for_vectors_that_cannot_be_computed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def too_large(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Encoder, "encode", too_large)
    monkeypatch.setenv("MCPFACTORY_SEARCH_MODEL", str(model(tmp_path / "model")))
    assert first(mounted(folder), "shelf") == "shelf"
    assert "search goes on without its model: MemoryError" in caplog.text


def test_a_cache_that_cannot_be_written_costs_no_answer(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("MCPFACTORY_SEARCH_MODEL", str(model(tmp_path / "model")))
    assert first(mounted(folder), "tome") == "list_books"


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


@rows(
    "config, says",
    [
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"num_attention_heads": 3}, "not a multiple"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"num_hidden_layers": float("inf")}, "num_hidden_layers"),
        ({"hidden_size": -16}, "hidden_size"),
        ({"intermediate_size": "32"}, "intermediate_size"),
        ({"max_position_embeddings": 2}, "max_position_embeddings"),
        ({"layer_norm_eps": -1.0}, "layer_norm_eps"),
    ],
)
def test_a_configuration_that_no_model_has_is_told(tmp_path: Path, config: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelError, match=rf"config\.json: .*{says}"):
        read_model(model(tmp_path, **config))


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


@pytest.mark.parametrize("number", ["one", -1, True, 2.0])
def test_a_piece_of_a_word_has_a_number(tmp_path: Path, number: Any) -> None:
    where = model(tmp_path)
    vocabulary = {word: number if word == "book" else place for place, word in enumerate(WORDS)}
    (where / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordPiece", "vocab": vocabulary}}))
    with pytest.raises(ModelError, match="a piece without a number"):
        read_model(where)


def test_weights_that_end_early_are_no_model(tmp_path: Path) -> None:
    where = model(tmp_path)
    weights = where / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ModelError, match="not whole"):
        read_model(where)


def test_a_text_has_the_same_vector_alone_and_among_longer_ones(tmp_path: Path) -> None:
    encoder = Encoder(read_model(model(tmp_path)))
    alone = encoder.encode(["add book"])
    among = encoder.encode(["shelf shelf shelf order.", "add book", "list"])
    np.testing.assert_allclose(alone[0], among[1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(among, axis=1), 1, atol=1e-6)
    assert alone[0] @ encoder.encode(["add tome"])[0] > 0.999


def test_the_first_token_stands_for_a_text_where_the_model_says_so(tmp_path: Path) -> None:
    mean = Encoder(read_model(model(tmp_path / "mean"))).encode(["add book"])
    first = Encoder(read_model(model(tmp_path / "first", pooling={"pooling_mode_cls_token": True}))).encode(
        ["add book"]
    )
    assert mean[0] @ first[0] < 0.99


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
