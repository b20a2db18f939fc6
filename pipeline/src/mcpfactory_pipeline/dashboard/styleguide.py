"""The parts that pages are made of, each in every state: what a page is checked against before it is changed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.dashboard.actions import FormInput
from mcpfactory_pipeline.dashboard.statuses import STATUSES, ShownStatus
from mcpfactory_pipeline.dashboard.values import Pager

__all__ = ["StyleguidePage", "styleguide_page"]

_TONES: Final = ("good", "none", "busy", "warn", "bad")
_DIGEST: Final = "sha256:" + "0123456789abcdef" * 4


@dataclass(frozen=True, slots=True)
class StyleguidePage:
    """The page. What its template does not name itself: statuses, tones of boxes, sizes of type, a form, a list's position, a hash."""

    workspace: str
    statuses: tuple[ShownStatus, ...]
    tones: tuple[str, ...]
    sizes: tuple[int, ...]
    inputs: tuple[FormInput, ...]
    pager: Pager
    digest: str


def styleguide_page(workspace: str) -> StyleguidePage:
    """Return the page."""
    inputs = (
        FormInput("reason", "Reason", "Kept in the history.", "text", True, "", ()),
        FormInput("channel", "Channel", "", "choice", True, "staging", ("staging", "production")),
        FormInput("until", "Until", "The last day.", "date", False, "", ()),
        FormInput("force", "Also what is up to date", "", "flag", False, "1", ()),
    )
    return StyleguidePage(
        workspace, tuple(STATUSES.values()), _TONES, (24, 20, 16, 14, 13, 12), inputs, Pager(1, 1, 0), _DIGEST
    )
