"""`python -m benchmarks.features`: draws docs/reference/features.md anew."""

from __future__ import annotations

from pathlib import Path

from benchmarks.features.page import features_page

if __name__ == "__main__":
    Path("docs/reference/features.md").write_text(features_page(), encoding="utf-8")
