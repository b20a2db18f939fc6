"""A model of sentences that somebody provides: a folder as Sentence Transformers publishes it, checked before anything is computed.

What is read is an encoder of the BERT family with a WordPiece vocabulary: `config.json`, `tokenizer.json`, `model.safetensors`,
and `1_Pooling/config.json` where there is one. Nothing here needs a library, and no weight is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path
from typing import Any, Final, TypeGuard

__all__ = ["ModelError", "SentenceModel", "TensorPlace", "read_model"]

Json = dict[str, Any]

_HINT: Final = "hint: a folder with config.json, tokenizer.json and model.safetensors of an encoder of the BERT family, all-MiniLM-L6-v2 for instance"
_SIZES: Final = {"F32": 4, "F16": 2}  # bytes of one number
_HEADER: Final = 8  # bytes that say how long the header is
_LONGEST_HEADER: Final = 10_000_000
_SPECIAL: Final = ("[CLS]", "[SEP]", "[UNK]")
_WORDS: Final = "embeddings.word_embeddings.weight"
_TEXT_KINDS: Final = "embeddings.token_type_embeddings.weight"
_MOST: Final = 1_000_000  # of anything that a configuration counts
_MOST_LAYERS: Final = 100
_DIMENSIONS: Final = 2


class ModelError(ValueError):
    """A model cannot be used: which file, why, and what would be right."""


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where the numbers of one tensor are.

    Attributes:
        kind: F32 or F16.
        shape: how many numbers, by dimension.
        start: of the first byte in the file.
    """

    kind: str
    shape: tuple[int, ...]
    start: int


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """What is known of a model before its weights are read.

    Attributes:
        weights: the file with them.
        tensors: those that are computed with, by name: where they are in it.
        vocabulary: pieces of words with their numbers.
        lowercase: capitals and accents do not count.
        layers: how many there are.
        heads: of attention in each layer.
        longest: tokens of one text.
        epsilon: keeps normalisation from dividing by zero.
        first_token: the vector of the first token stands for the text, not the mean of all.
    """

    weights: Path
    tensors: Mapping[str, TensorPlace]
    vocabulary: Mapping[str, int]
    lowercase: bool
    layers: int
    heads: int
    longest: int
    epsilon: float
    first_token: bool


def read_model(folder: Path) -> SentenceModel:
    """Return what a folder has.

    Raises:
        ModelError: a file is missing, damaged, or of another kind of model.
    """
    path = folder / "config.json"
    config, tokenizer = _json(path), _json(folder / "tokenizer.json")
    pooling = folder / "1_Pooling" / "config.json"
    if config.get("model_type") != "bert" or config.get("hidden_act", "gelu") != "gelu":
        raise ModelError(f"{path}: not an encoder of the BERT family\n{_HINT}")
    vocabulary, lowercase = _vocabulary(folder / "tokenizer.json", tokenizer)
    layers = _count(path, config, "num_hidden_layers", most=_MOST_LAYERS)
    heads, width = _count(path, config, "num_attention_heads"), _count(path, config, "hidden_size")
    longest = _count(path, config, "max_position_embeddings", least=3)  # a beginning, a piece, an end
    inner = _count(path, {"intermediate_size": 4 * width, **config}, "intermediate_size")
    epsilon = config.get("layer_norm_eps", 1e-12)
    if width % heads:
        raise ModelError(f"{path}: hidden_size {width} is not a multiple of num_attention_heads {heads}\n{_HINT}")
    if not isinstance(epsilon, float) or not isfinite(epsilon) or epsilon <= 0:
        raise ModelError(f"{path}: layer_norm_eps should be a small number above 0\n{_HINT}")
    shapes = _shapes(layers, width, inner, longest) | {_WORDS: (max(vocabulary.values()) + 1, width)}
    weights = folder / "model.safetensors"
    return SentenceModel(
        weights=weights,
        tensors=_tensors(weights, shapes),
        vocabulary=vocabulary,
        lowercase=lowercase,
        layers=layers,
        heads=heads,
        longest=longest,
        epsilon=epsilon,
        first_token=pooling.exists() and _json(pooling).get("pooling_mode_cls_token") is True,
    )


def _json(path: Path) -> Json:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: {error}\n{_HINT}") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path}: not an object\n{_HINT}")
    return content


def _count(path: Path, config: Json, name: str, *, least: int = 1, most: int = _MOST) -> int:
    value = config.get(name)
    if not _is_whole(value) or not least <= value <= most:
        raise ModelError(f"{path}: {name} should be a number from {least} to {most:,}, not {value!r:.80}\n{_HINT}")
    return value


def _is_whole(value: object) -> TypeGuard[int]:
    return type(value) is int


def _vocabulary(path: Path, tokenizer: Json) -> tuple[dict[str, int], bool]:
    model, normalizer = tokenizer.get("model"), tokenizer.get("normalizer")
    vocabulary = model.get("vocab") if isinstance(model, dict) and model.get("type") == "WordPiece" else None
    if not isinstance(vocabulary, dict) or any(name not in vocabulary for name in _SPECIAL):
        raise ModelError(f"{path}: not a WordPiece vocabulary with {', '.join(_SPECIAL)}\n{_HINT}")
    if not all(_is_whole(number) and 0 <= number < _MOST for number in vocabulary.values()):
        raise ModelError(f"{path}: the vocabulary has a piece without a number\n{_HINT}")
    return vocabulary, isinstance(normalizer, dict) and normalizer.get("lowercase") is True


def _shapes(layers: int, width: int, inner: int, longest: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor that is computed with, but that of the words."""
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.position_embeddings.weight": (longest, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for layer in range(layers):
        for part, out, into in (
            ("attention.self.query", width, width),
            ("attention.self.key", width, width),
            ("attention.self.value", width, width),
            ("attention.output.dense", width, width),
            ("intermediate.dense", inner, width),
            ("output.dense", width, inner),
        ):
            shapes[f"encoder.layer.{layer}.{part}.weight"] = (out, into)
            shapes[f"encoder.layer.{layer}.{part}.bias"] = (out,)
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"encoder.layer.{layer}.{part}.weight"] = shapes[f"encoder.layer.{layer}.{part}.bias"] = (width,)
    return shapes


def _tensors(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, TensorPlace]:
    """Read the header of a safetensors file: its length in eight bytes, then JSON, then the numbers.

    Only tensors of `shapes` are looked at; that of kinds of text may be there, too.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            begin = _HEADER + int.from_bytes(file.read(_HEADER), "little")
            header = json.loads(file.read(min(begin - _HEADER, _LONGEST_HEADER)))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: {error}\n{_HINT}") from None
    if not isinstance(header, dict):
        raise ModelError(f"{path}: the header is not an object\n{_HINT}")
    expected = {**shapes, _TEXT_KINDS: (1, shapes[_WORDS][1])} if _TEXT_KINDS in header else shapes
    places: dict[str, TensorPlace] = {}
    for name, shape in expected.items():
        if name not in header:
            raise ModelError(f"{path}: {name} is missing\n{_HINT}")
        place = _place(header[name], begin, size)
        if place is None:
            raise ModelError(f"{path}: {name} is not whole, or its numbers are none of {', '.join(_SIZES)}\n{_HINT}")
        more_rows = name in (_WORDS, _TEXT_KINDS) and place.shape[1:] == shape[1:] and place.shape[:1] >= shape[:1]
        if place.shape != shape and not more_rows:
            raise ModelError(f"{path}: {name} should be {shape} and is {place.shape}\n{_HINT}")
        places[name] = place
    return places


def _place(row: Any, begin: int, size: int) -> TensorPlace | None:
    """Return where a tensor is by its row in the header; None where the file does not have what the row says."""
    try:
        kind, shape, (first, end) = row["dtype"], row["shape"], row["data_offsets"]
        each = _SIZES[kind]
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(shape, list) or len(shape) > _DIMENSIONS:
        return None
    if not all(_is_whole(number) and 0 <= number <= size for number in (*shape, first, end)):
        return None
    whole = end - first == prod(shape) * each and begin + end <= size
    return TensorPlace(kind, tuple(shape), begin + first) if whole else None
