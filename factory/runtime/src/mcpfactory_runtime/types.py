"""Type aliases shared by all packages."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
"""A JSON object."""
