"""What a server advertises: a capability for everything that is registered, in the newest form and all older ones.

Projection takes away what a peer's revision does not know: `tasks` is the core feature of one revision, `extensions` are
known to the newest one only.
"""

from __future__ import annotations

from typing import Any

from mcpfactory_runtime.revisions import APPS, SKILLS, TASKS
from mcpfactory_runtime.server.registry import Registry

__all__ = ["capabilities_of"]

Json = dict[str, Any]


def capabilities_of(registry: Registry) -> Json:
    """Return the `capabilities` of a server that offers what is in the registry."""
    found: Json = {"logging": {}}
    extensions: Json = {}
    if registry.tools or registry.generated:
        found["tools"] = {"listChanged": True}
    if registry.resources or registry.templates:
        found["resources"] = {"subscribe": True, "listChanged": True}
    if registry.prompts:
        found["prompts"] = {"listChanged": True}
    if registry.completion:
        found["completions"] = {}
    if any(tool.task is not None for tool in registry.tools.values()):
        found["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        extensions[TASKS] = {}
    if registry.skills:
        extensions[SKILLS] = {"directoryRead": True}
    if registry.has_apps:
        extensions[APPS] = {}
    if extensions:
        found["extensions"] = extensions
    return found
