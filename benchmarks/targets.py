"""The targets as one table: which ratio of medians, and what it has to be."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.workloads import BARE, FASTMCP, OURS, POOL, PYTHON, PYTHON_PLAIN, TYPESCRIPT
from benchmarks.workspace import COMMANDS
