"""Fast shell completion of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import typer

Completion = Callable[[str], list[str]]

_STAGES: Final = ("generate", "build", "test", "validate")
_CHANNELS: Final = ("staging", "production")
_CLIENTS: Final = (
    "claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "devin", "zed", "codex", "gemini", "antigravity",
    "goose", "continue", "cline", "lm-studio", "opencode", "copilot-cli", "kiro", "junie", "warp",
)  # fmt: skip


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _among(*names: str) -> Completion:
    """Return a completion of fixed names, copied here to avoid slow imports."""

    def complete(incomplete: str) -> list[str]:
        return _beginning(names, incomplete)

    return complete


clients: Final = _among(*_CLIENTS)
kinds: Final = _among("added", "changed", "fixed", "removed", "security")
origins: Final = _among("git", "index", "vendored")
providers: Final = _among("github", "gitlab")
targets: Final = _among("pypi", "mcpb", "docker", "sbom", "registry")


def servers(incomplete: str) -> list[str]:
    """Return the servers of the current workspace that start with the typed text."""
    root = _workspace()
    found = (path.parent.name for path in (root / "servers").glob("[!.]*/mcpfactory.toml")) if root else ()
    return sorted(_beginning(found, incomplete))


def channels(incomplete: str) -> list[str]:
    """Return the channels of the current workspace that start with the typed text."""
    return _beginning(_channels(_settings()), incomplete)


def stages(incomplete: str) -> list[str]:
    """Return the stages of the current workspace, including custom stages, that start with the typed text."""
    settings = _settings()
    tables = settings.get("stages")
    own = [table.get("name") for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    names = [*_STAGES, *(name for name in own if isinstance(name, str)), *_channels(settings)[:1]]
    return _beginning(names, incomplete)


def tools(context: typer.Context, incomplete: str) -> list[str]:
    """Return the tools in the server's report that start with the typed text."""
    import json

    root, server = _workspace(), context.params.get("server") or context.params.get("name")
    if root is None or not isinstance(server, str) or server not in servers(""):
        return []
    try:
        listed = json.loads((root / "servers" / server / ".mcpfactory" / "report.json").read_bytes())["tools"]
        return _beginning((tool["name"] for tool in listed), incomplete)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def templates(incomplete: str) -> list[str]:
    """Return the templates that start with the typed text."""
    from importlib.util import find_spec

    spec = find_spec("mcpfactory_codegen")
    if spec is None or spec.origin is None:
        return []
    folders = (Path(spec.origin).parent / "_templates").glob("*/copier.yml")
    return sorted(_beginning((path.parent.name for path in folders), incomplete))


def _workspace() -> Path | None:
    here = Path.cwd()
    folders = (folder for folder in (here, *here.parents) if (folder / "servers").is_dir())
    return next((folder for folder in folders if (folder / "mcpfactory.toml").exists()), None)


def _settings() -> dict[str, Any]:
    """Return the workspace's `[pipeline]` table, or {} if it is missing or unreadable."""
    import tomllib

    root = _workspace()
    try:
        text = (root / "mcpfactory.toml").read_text(encoding="utf-8") if root else ""
        found = tomllib.loads(text).get("pipeline", {})
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _channels(settings: dict[str, Any]) -> list[str]:
    try:
        return [str(channel["name"]) for channel in settings.get("channels", ())] or list(_CHANNELS)
    except (KeyError, TypeError):
        return list(_CHANNELS)
