"""The factory's own distributions as wheels: the runtime for candidates, channels and bundles, all of them for a workspace."""

from __future__ import annotations

from mcpfactory_pipeline.build.distributions.handing import (
    OWN,
    RUNTIME,
    distribution_wheel,
    find_runtime,
    runtime_wheel,
)

__all__ = ["OWN", "RUNTIME", "distribution_wheel", "find_runtime", "runtime_wheel"]
