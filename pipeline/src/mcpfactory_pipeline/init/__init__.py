"""Making a workspace: what it consists of, and what a folder lacks to be one."""

from __future__ import annotations

from mcpfactory_pipeline.init.make import init_workspace

__all__ = ["init_workspace"]
