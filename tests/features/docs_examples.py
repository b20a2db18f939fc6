"""Text of documentation sections, and execution of their Python examples."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from docs.generated import PAGES, page_text

ROOT = Path(__file__).resolve().parents[2]


@cache
def section(place: str) -> str:
    """Return the text below a heading such as `reference/tasks.md#tasks`, up to the next heading of its level."""
    name, _, anchor = place.partition("#")
    fenced, level, found = False, 0, []
    seen: dict[str, int] = {}
    page = f"docs/{name}"
    text = page_text(page) if page in PAGES else (ROOT / page).read_text("utf-8")
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match(r"(#+) (.*)", line)
        if heading:
            if level and (len(heading[1]) <= level or level == 1):
                break
            slug = re.sub(r"[^\w\- ]", "", heading[2].lower().strip()).replace(" ", "-")
            seen[slug] = seen.get(slug, -1) + 1
            if anchor == (f"{slug}-{seen[slug]}" if seen[slug] else slug):
                level = len(heading[1])
        if level:
            found.append(line)
    return "\n".join(found)


def says(place: str, words: str) -> None:
    """Check that a section contains these words, which the test then verifies."""
    assert words in section(place), f"docs/{place} does not say {words!r}"


def run_shown(place: str, **known: Any) -> dict[str, Any]:
    """Run a section's first Python block as a module; return its names. `known` are names that the block requires."""
    block = re.search(r"^```python\n(.*?)^```", section(place), re.DOTALL | re.MULTILINE)
    assert block is not None, f"docs/{place} has no block of Python"
    names: dict[str, Any] = {"__name__": "shown", **known}
    exec(compile(block[1], f"docs/{place}", "exec"), names)
    return names
