"""What all tests share: property-based tests try the same examples in every run, so that a red suite is red for everybody.

`MCPFACTORY_FUZZ=N` searches for new examples instead, N times as many.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile("search" if os.environ.get("MCPFACTORY_FUZZ") else "suite")
