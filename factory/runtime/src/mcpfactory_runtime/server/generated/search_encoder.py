"""Sentences as vectors, computed by a model of the BERT family (Devlin and others, 2018) with numpy alone.

Weights stay in their file, which is mapped into memory; of the word embeddings only the rows that are met are ever read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mcpfactory_runtime.server.generated.search_model import SentenceModel, TensorPlace
from mcpfactory_runtime.server.generated.search_wordpiece import WordPiece

__all__ = ["Encoder", "Vectors"]

Vectors = npt.NDArray[np.float32]

_TOKENS: Final = 64  # of one text: a tool's name, title and first sentences
_BATCH: Final = 32
_MASKED: Final = np.float32(-1e4)  # what attention sees where a text of a batch has ended
_KINDS: Final[dict[str, Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}


class Encoder:
    """Turns texts into vectors of length 1, so that the scalar product of two says how near they are."""

    def __init__(self, model: SentenceModel) -> None:
        self._model = model
        self._file = np.memmap(model.weights, np.uint8, mode="r")
        self._pieces = WordPiece(model.vocabulary, lowercase=model.lowercase)
        self._weights = {name: self._tensor(place) for name, place in model.tensors.items()}
        self.width = self._weights["embeddings.word_embeddings.weight"].shape[1]
        """How many numbers a vector has."""

    def _tensor(self, place: TensorPlace) -> npt.NDArray[Any]:
        numbers = np.ndarray(place.shape, _KINDS[place.kind], self._file.data, place.start)
        return numbers if place.kind == "F32" or len(place.shape) == 2 else numbers.astype(np.float32)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text."""
        most = min(_TOKENS, self._model.longest)
        rows = [self._pieces.numbers(text, most) for text in texts]
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        vectors = np.zeros((len(rows), self.width), np.float32)
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            length = max(len(rows[number]) for number in batch)
            tokens = np.zeros((len(batch), length), np.int64)
            mask = np.zeros((len(batch), length), np.float32)
            for place, number in enumerate(batch):
                tokens[place, : len(rows[number])] = rows[number]
                mask[place, : len(rows[number])] = 1
            vectors[batch] = self._pooled(self._states(tokens, mask), mask)
        return vectors

    def _states(self, tokens: npt.NDArray[np.int64], mask: Vectors) -> Vectors:
        weights = self._weights
        states = weights["embeddings.word_embeddings.weight"][tokens].astype(np.float32)
        states += weights["embeddings.position_embeddings.weight"][: tokens.shape[1]]
        if (types := weights.get("embeddings.token_type_embeddings.weight")) is not None:
            states += types[0]
        states = self._normalized(states, "embeddings.LayerNorm")
        hidden = np.where(mask[:, None, None, :] > 0, np.float32(0), _MASKED)
        for layer in range(self._model.layers):
            states = self._layer(states, hidden, f"encoder.layer.{layer}.")
        return states

    def _layer(self, states: Vectors, hidden: npt.NDArray[Any], name: str) -> Vectors:
        count, length, width = states.shape
        heads = self._model.heads

        def split(part: str) -> Vectors:
            return (
                self._linear(states, f"{name}attention.self.{part}")
                .reshape(count, length, heads, width // heads)
                .transpose(0, 2, 1, 3)
            )

        scores = split("query") @ split("key").transpose(0, 1, 3, 2) / np.float32((width // heads) ** 0.5) + hidden
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        seen = (shares @ split("value")).transpose(0, 2, 1, 3).reshape(count, length, width)
        states = self._normalized(
            self._linear(seen, f"{name}attention.output.dense") + states, f"{name}attention.output.LayerNorm"
        )
        inner = _gelu(self._linear(states, f"{name}intermediate.dense"))
        return self._normalized(self._linear(inner, f"{name}output.dense") + states, f"{name}output.LayerNorm")

    def _linear(self, states: Vectors, name: str) -> Vectors:
        weight = self._weights[f"{name}.weight"]
        flat = states.reshape(-1, states.shape[-1]) @ weight.astype(np.float32, copy=False).T
        flat += self._weights[f"{name}.bias"]
        return flat.reshape(*states.shape[:-1], -1)

    def _normalized(self, states: Vectors, name: str) -> Vectors:
        centred = states - states.mean(-1, keepdims=True)
        spread = (centred * centred).mean(-1, keepdims=True)
        normal = centred / np.sqrt(spread + np.float32(self._model.epsilon))
        scaled: Vectors = normal * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return scaled

    def _pooled(self, states: Vectors, mask: Vectors) -> Vectors:
        if self._model.first_token:
            pooled = states[:, 0]
        else:
            pooled = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        length: Vectors = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), np.float32(1e-12))
        return length


def _gelu(states: Vectors) -> Vectors:
    """Return the Gaussian error linear unit in its approximation by tanh: it differs in the fourth digit."""
    curve: Vectors = np.tanh(np.float32(0.7978845608) * (states + np.float32(0.044715) * states * states * states))
    return np.float32(0.5) * states * (1 + curve)
