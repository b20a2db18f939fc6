"""The factory's own distributions as wheels: the runtime for candidates, channels and bundles, all of them for a workspace."""

from __future__ import annotations

from mcpfactory_pipeline.build.distributions.handing import (
    DISTRIBUTIONS,
    RUNTIME,
    describe_runtime,
    distribution_wheel,
    runtime_wheel,
)

__all__ = ["DISTRIBUTIONS", "RUNTIME", "describe_runtime", "distribution_wheel", "runtime_wheel"]
