"""Making a workspace: what it consists of, and what a folder lacks to be one."""

from __future__ import annotations

from mcpfactory_pipeline.init.apply import apply_setup, init_workspace
from mcpfactory_pipeline.init.setup import Setup, read_setup

__all__ = ["Setup", "apply_setup", "init_workspace", "read_setup"]
