"""Set up workspaces, and remove or rename servers."""

from __future__ import annotations

from mcpfactory_pipeline.lifecycle.setup import Setup, apply_setup, init_workspace, read_setup

__all__ = ["Setup", "apply_setup", "init_workspace", "read_setup"]
