"""Shell completion of names; reads folder names only, so that a key press stays quick."""

from __future__ import annotations

from pathlib import Path

__all__ = ["channels", "clients", "kinds", "providers", "servers", "stages", "targets", "templates"]

_STAGES = ("generate", "build", "test", "validate", "staging")
_CLIENTS = (
    "claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "zed", "codex", "gemini", "goose", "continue", "cline",
    "lm-studio", "opencode", "copilot-cli", "kiro",
)  # fmt: skip
_KINDS = ("added", "changed", "fixed", "removed", "security")
_PROVIDERS = ("github", "gitlab")
_TARGETS = ("pypi", "mcpb", "oci", "sbom", "registry")
_CHANNELS = ("staging", "production")


def servers(incomplete: str) -> list[str]:
    """Servers of the workspace around the current folder that begin with what was typed."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "mcpfactory.toml").exists() and (folder / "servers").is_dir():
            found = (path.parent.name for path in (folder / "servers").glob("*/mcpfactory.toml"))
            return sorted(name for name in found if name.startswith(incomplete))
    return []


def channels(incomplete: str) -> list[str]:
    """Channels of the workspace around the current folder that begin with what was typed."""
    import tomllib

    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "mcpfactory.toml").exists() and (folder / "servers").is_dir():
            try:
                settings = tomllib.loads((folder / "mcpfactory.toml").read_text(encoding="utf-8")).get("pipeline", {})
                names = [channel["name"] for channel in settings.get("channels", [])] or list(_CHANNELS)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                return []
            return [name for name in names if name.startswith(incomplete)]
    return []


def stages(incomplete: str) -> list[str]:
    """Stages that begin with what was typed."""
    return [name for name in _STAGES if name.startswith(incomplete)]


def clients(incomplete: str) -> list[str]:
    """Clients that begin with what was typed."""
    return [name for name in _CLIENTS if name.startswith(incomplete)]


def kinds(incomplete: str) -> list[str]:
    """Kinds of changelog fragments that begin with what was typed."""
    return [name for name in _KINDS if name.startswith(incomplete)]


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
