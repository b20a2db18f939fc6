"""Generated pages: `make docs` writes them before it builds the site; they are not in the repository."""

from __future__ import annotations

from pathlib import Path
from pkgutil import resolve_name
from typing import Final

__all__ = ["PAGES", "page_text", "write_pages"]

PAGES: Final = {
    "docs/reference/cli.md": "docs.pages.commands:cli_reference",
    "docs/reference/clients.md": "docs.pages.clients:clients_reference",
    "docs/reference/compliance.md": "tests.runtime.requirements.compliance_page:draw",
    "docs/reference/features.md": "benchmarks.features.page:features_page",
    "docs/reference/folders.md": "benchmarks.codebase.folders:folders_page",
    "docs/reference/publish.md": "docs.pages.targets:publish_reference",
    "docs/reference/settings.md": "docs.pages.settings:settings_reference",
    "docs/reference/rules.md": "mcpfactory_pipeline.checks.rules:rules_reference",
}
"""Page → the function that returns it. Add a new page to `.gitignore` as well."""


def page_text(page: str) -> str:
    """Return a generated page as Markdown."""
    text: str = resolve_name(PAGES[page])()
    return text


def write_pages(root: Path) -> None:
    """Write all generated pages below the root of the repository."""
    for page in PAGES:
        (root / page).write_text(page_text(page), encoding="utf-8")
