"""Making a workspace: what it consists of, and what a folder lacks to be one."""

from __future__ import annotations

from mcpfactory_pipeline.init.make import carry_out, init_workspace
from mcpfactory_pipeline.init.plan import Plan, plan_workspace

__all__ = ["Plan", "carry_out", "init_workspace", "plan_workspace"]
