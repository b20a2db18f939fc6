"""One question, asked once: what the model did, and what that is worth. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from mcpfactory_pipeline.evaluation.model import NO_TOKENS, TokenUsage

__all__ = [
    "NO_TOOL",
    "SHOWN",
    "VERDICTS",
    "Attempt",
    "MadeCall",
    "ModelTranscript",
    "Setting",
    "ToolChoice",
    "WrongArgument",
]

NO_TOOL: Final = "(none)"
"""Stands for a tool where none was expected, or none was called."""

VERDICTS: Final[Mapping[str, str]] = {
    "passed": "a right way was gone, and nothing was written besides",
    "no-call": "no tool was called",
    "wrong-tool": "another tool was called",
    "wrong-arguments": "the right tool was called with other arguments",
    "wrong-answer": "the right call failed, or what was said lacks what it must contain",
    "unwanted-call": "a tool was called though none fits, or one that writes was called besides",
    "refused": "the model refused to answer",
    "unfinished": "the model did not come to an end",
    "unanswered": "the endpoint gave no answer: nothing is known",
}

SHOWN: Final = 300  # characters of a text that are kept


@dataclass(frozen=True, slots=True)
class Setting:
    """How tools were offered: which of them, in which mode, and in which words (`own`, `shuffled`, `renamed`)."""

    profile: str = "full"
    mode: str = "full"
    words: str = "own"

    @property
    def title(self) -> str:
        """As tables name it."""
        return ", ".join([self.profile, self.mode, *([] if self.words == "own" else [self.words])])


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that a model made, with the tool's own name; `arguments` is None where it wrote no JSON object.

    `machinery` marks a call of search mode that only looks for tools.
    """

    tool: str
    arguments: Mapping[str, Any] | None
    turn: int
    answer: str = ""
    failed: bool = False
    machinery: bool = False


@dataclass(frozen=True, slots=True)
class ModelTranscript:
    """What a model did about a question. `seconds` is all of it, `waited` what the endpoint took of that."""

    calls: tuple[MadeCall, ...]
    text: str
    turns: int
    usage: TokenUsage = NO_TOKENS
    seconds: float = 0.0
    waited: float = 0.0
    refused: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """A tool that was expected, and the one that was called in its place."""

    expected: str
    chosen: str


@dataclass(frozen=True, slots=True)
class WrongArgument:
    """An argument of the right tool that is `missing`, `different`, too much (`extra`), or no JSON (`unreadable`)."""

    tool: str
    field: str
    kind: str
    expected: str = ""
    given: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of asking a case once in a setting; `verdict` is of `VERDICTS`."""

    case: str
    setting: Setting
    number: int
    verdict: str
    faults: tuple[str, ...] = ()
    choices: tuple[ToolChoice, ...] = ()
    wrong: tuple[WrongArgument, ...] = ()
    calls: tuple[MadeCall, ...] = ()
    text: str = ""
    turns: int = 0
    usage: TokenUsage = NO_TOKENS
    seconds: float = 0.0
    waited: float = 0.0

    @property
    def answered(self) -> bool:
        """Whether the endpoint answered at all."""
        return self.verdict != "unanswered"

    def to_json(self) -> dict[str, Any]:
        """Plain data; long texts are cut."""
        data = asdict(self)
        data |= {name: list(data[name]) for name in ("faults", "choices", "wrong")}
        data["calls"] = [{**call, "answer": call["answer"][:SHOWN]} for call in data["calls"]]
        rounded = {name: round(data[name], 3) for name in ("seconds", "waited")}
        return {**data, **rounded, "text": self.text[:SHOWN]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Attempt:
        """Return the attempt from `to_json`.

        Raises:
            ValueError, TypeError, KeyError: it is none.
        """
        if data["verdict"] not in VERDICTS:
            raise ValueError(f"{data['verdict']!r} is no verdict")
        parts: dict[str, Any] = {
            "setting": Setting(**data["setting"]),
            "faults": tuple(map(str, data["faults"])),
            "choices": tuple(ToolChoice(**one) for one in data["choices"]),
            "wrong": tuple(WrongArgument(**one) for one in data["wrong"]),
            "calls": tuple(MadeCall(**one) for one in data["calls"]),
            "usage": TokenUsage(**data["usage"]),
        }
        return cls(**{**data, **parts})
