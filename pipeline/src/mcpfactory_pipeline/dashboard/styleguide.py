"""The parts that pages are made of, each in every state: what a page is checked against before it is changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.dashboard.actions import FormInput
from mcpfactory_pipeline.dashboard.statuses import STATUSES, ShownStatus
from mcpfactory_pipeline.dashboard.values import Pager
from mcpfactory_pipeline.views.drawing import SIGNS
from mcpfactory_pipeline.views.graph import GraphNode
from mcpfactory_pipeline.views.places import GraphPlace, PlaceChip

__all__ = ["StyleguidePage", "styleguide_page"]

_TONES: Final = ("good", "none", "busy", "warn", "bad")
_DIGEST: Final = "sha256:" + "0123456789abcdef" * 4


@dataclass(frozen=True, slots=True)
class StyleguidePage:
    """The page. What its template does not name itself: statuses, tones of boxes, sizes of type, a form, a list's position, a hash, places of the picture."""

    workspace: str
    statuses: tuple[ShownStatus, ...]
    tones: tuple[str, ...]
    sizes: tuple[int, ...]
    inputs: tuple[FormInput, ...]
    pager: Pager
    digest: str
    places: tuple[GraphPlace, ...]


def styleguide_page(workspace: str) -> StyleguidePage:
    """Return the page."""
    inputs = (
        FormInput("reason", "Reason", "Kept in the history.", "text", True, "", ()),
        FormInput("channel", "Channel", "", "choice", True, "staging", ("staging", "production")),
        FormInput("until", "Until", "The last day.", "date", False, "", ()),
        FormInput("force", "Also what is up to date", "", "flag", False, "1", ()),
    )
    return StyleguidePage(
        workspace,
        tuple(STATUSES.values()),
        _TONES,
        (24, 20, 16, 14, 13, 12),
        inputs,
        Pager(1, 1, 0),
        _DIGEST,
        tuple(_places()),
    )


def _places() -> Iterator[GraphPlace]:
    """Yield a place of each kind, with a chip in each state among them."""
    states, before = list(SIGNS), ""
    for level, kind in enumerate(("stage", "gates", "approval", "channel")):
        chips = tuple(PlaceChip("2.0.0", status, "an example", "/styleguide/") for status in states[level::4])
        yield GraphPlace(GraphNode(kind, kind, (before,) if before else (), level), chips, len(chips))
        before = kind
