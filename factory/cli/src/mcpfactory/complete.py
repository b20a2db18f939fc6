"""Shell completion of names: reads folder names and at most one small file, and loads no other part, so that a key press stays quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import typer

__all__ = ["channels", "clients", "kinds", "origins", "providers", "servers", "stages", "targets", "templates", "tools"]

_STAGES: Final = ("generate", "build", "test", "validate")
_CLIENTS: Final = (
    "claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "devin", "zed", "codex", "gemini", "antigravity", "goose",
    "continue", "cline", "lm-studio", "opencode", "copilot-cli", "kiro", "junie", "warp",
)  # fmt: skip
_KINDS: Final = ("added", "changed", "fixed", "removed", "security")
_ORIGINS: Final = ("git", "index", "vendored")
_PROVIDERS: Final = ("github", "gitlab")
_TARGETS: Final = ("pypi", "mcpb", "oci", "docker", "sbom", "registry")
_CHANNELS: Final = ("staging", "production")


def servers(incomplete: str) -> list[str]:
    """Servers of the workspace around the current folder that begin with what was typed."""
    root = _workspace()
    found = (path.parent.name for path in (root / "servers").glob("[!.]*/mcpfactory.toml")) if root else ()
    return sorted(name for name in found if name.startswith(incomplete))


def channels(incomplete: str) -> list[str]:
    """Channels of the workspace around the current folder that begin with what was typed."""
    return [name for name in _channels(_settings()) if name.startswith(incomplete)]


def stages(incomplete: str) -> list[str]:
    """Stages of the workspace around the current folder, its own ones too, that begin with what was typed."""
    settings = _settings()
    tables = settings.get("stages")
    own = [table.get("name") for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []
    names = [*_STAGES, *(name for name in own if isinstance(name, str)), *_channels(settings)[:1]]
    return [name for name in names if name.startswith(incomplete)]


def tools(context: typer.Context, incomplete: str) -> list[str]:
    """Tools of the server that was typed before, by its own report, that begin with what was typed."""
    import json

    root, server = _workspace(), context.params.get("server") or context.params.get("name")
    if root is None or not isinstance(server, str) or server not in servers(""):
        return []
    try:
        listed = json.loads((root / "servers" / server / ".mcpfactory" / "report.json").read_bytes())["tools"]
        return [tool["name"] for tool in listed if tool["name"].startswith(incomplete)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _workspace() -> Path | None:
    here = Path.cwd()
    folders = (folder for folder in (here, *here.parents) if (folder / "servers").is_dir())
    return next((folder for folder in folders if (folder / "mcpfactory.toml").exists()), None)


def _settings() -> dict[str, Any]:
    """Return the table `[pipeline]` of the workspace; empty where there is none, or none that can be read."""
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


def clients(incomplete: str) -> list[str]:
    """Clients that begin with what was typed."""
    return [name for name in _CLIENTS if name.startswith(incomplete)]


def kinds(incomplete: str) -> list[str]:
    """Kinds of changelog fragments that begin with what was typed."""
    return [name for name in _KINDS if name.startswith(incomplete)]


def origins(incomplete: str) -> list[str]:
    """Words for where the factory comes from that begin with what was typed."""
    return [name for name in _ORIGINS if name.startswith(incomplete)]


def providers(incomplete: str) -> list[str]:
    """Providers of CI that begin with what was typed."""
    return [name for name in _PROVIDERS if name.startswith(incomplete)]


def targets(incomplete: str) -> list[str]:
    """Targets of `publish` that begin with what was typed."""
    return [name for name in _TARGETS if name.startswith(incomplete)]


def templates(incomplete: str) -> list[str]:
    """Templates that begin with what was typed."""
    from importlib.util import find_spec

    spec = find_spec("mcpfactory_codegen")
    if spec is None or spec.origin is None:
        return []
    folders = (Path(spec.origin).parent / "_templates").glob("*/copier.yml")
    return sorted(path.parent.name for path in folders if path.parent.name.startswith(incomplete))
