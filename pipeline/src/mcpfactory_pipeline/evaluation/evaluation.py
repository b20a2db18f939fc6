"""What was found about a server's tools with its cases: plain data, and the figures that follow from it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mcpfactory_pipeline.evaluation.competition import CompetingPair, ToolShare
from mcpfactory_pipeline.evaluation.replay import ReplayedWay
from mcpfactory_pipeline.evaluation.retrieval import WITHIN, chance_within

__all__ = ["CaseOutcome", "Evaluation", "Mode", "ToolList"]

Mode = Literal["full", "search"]


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What came of one case in one mode.

    Attributes:
        case: its name.
        question: as it was asked.
        mode: how tools were offered.
        ways: what came of its right ways; none for a case that no tool fits.
        rank: the place by which all tools of one right way were seen; None when they were not.
        called: whether the calls were made, or their arguments only checked.
    """

    case: str
    question: str
    mode: Mode
    ways: tuple[ReplayedWay, ...]
    rank: int | None
    called: bool = True

    @property
    def answered(self) -> bool:
        """Whether every right way did what the case says."""
        return not any(way.faults for way in self.ways)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        ways = [{"tools": list(way.tools), "faults": list(way.faults)} for way in self.ways]
        return {
            "case": self.case,
            "question": self.question,
            "mode": self.mode,
            "ways": ways,
            "rank": self.rank,
            "called": self.called,
        }


@dataclass(frozen=True, slots=True)
class ToolList:
    """What a client is shown in one mode."""

    tools: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything that was found about one server in one profile."""

    server: str
    profile: str
    lists: Mapping[Mode, ToolList]
    outcomes: Sequence[CaseOutcome]
    competing: Sequence[CompetingPair] = field(default=())
    expensive: Sequence[ToolShare] = field(default=())

    @property
    def faults(self) -> list[str]:
        """Each right way that is none, in words."""
        return [
            f"{one.case} ({one.mode}): {fault}" for one in self.outcomes for way in one.ways for fault in way.faults
        ]

    def judged(self, mode: Mode) -> list[CaseOutcome]:
        """Return the outcomes of a mode that have a right tool to find."""
        return [one for one in self.outcomes if one.mode == mode and one.ways]

    def found(self, mode: Mode, within: int) -> int:
        """Return how many of those were seen within so many places."""
        return sum(one.rank is not None and one.rank <= within for one in self.judged(mode))

    def share(self, mode: Mode, within: int) -> float:
        """Return which part of the cases with a right tool was seen within so many places; 1 where there are none."""
        judged = self.judged(mode)
        return self.found(mode, within) / len(judged) if judged else 1.0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        modes = {
            mode: {
                "tools": one.tools,
                "tokens": one.tokens,
                "judged": len(self.judged(mode)),
                "found": {str(within): self.found(mode, within) for within in WITHIN},
                "chance": {str(within): round(chance_within(self.lists["full"].tools, within), 3) for within in WITHIN},
            }
            for mode, one in self.lists.items()
        }
        return {
            "server": self.server,
            "profile": self.profile,
            "modes": modes,
            "cases": [one.to_json() for one in self.outcomes],
            "competing": [one.to_json() for one in self.competing],
            "expensive": [one.to_json() for one in self.expensive],
            "faults": self.faults,
        }
