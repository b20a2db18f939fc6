"""The score as a picture for a README: SVG without scripts, fonts or anything fetched."""

from __future__ import annotations

from typing import Final

from mcpfactory_pipeline.checks.report import Report

__all__ = ["to_badge"]

_WIDTH: Final = 7  # of one character in pixels, with room to spare: the viewer's font decides
_COLOURS: Final = (
    (95, "#2e7d32"),
    (80, "#5d7a00"),
    (0, "#8a5a00"),
)  # white text on each has a contrast of at least 4.5
_BAD: Final = "#b3261e"


def to_badge(report: Report) -> str:
    """`mcp | 97/100` (`, 2 waived`), `mcp | not shown to work` or `mcp | not promotable`; the colour says the same as the words."""
    waived = f", {len(report.waived)} waived" if report.waived else ""
    words = f"{report.score}/100{waived}" if report.passed else report.verdict_words
    colour = _COLOURS[-1][1] if report.verdict == "not shown" else _BAD
    if report.passed:
        colour = next(colour for least, colour in _COLOURS if report.score >= least)
    left, right = 4 * _WIDTH + 8, len(words) * _WIDTH + 12
    font = 'font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="MCP: {words}">'
        f"<title>MCP: {words}</title>"
        f'<rect width="{left + right}" height="20" rx="3" fill="#444"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" fill="{colour}"/>'
        f'<text x="{left / 2:g}" y="14" {font}>MCP</text>'
        f'<text x="{left + right / 2:g}" y="14" {font}>{words}</text></svg>\n'
    )
