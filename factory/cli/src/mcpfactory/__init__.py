"""The command line of mcpfactory."""

from importlib.metadata import version as _version

__all__ = ["version"]


def version() -> str:
    """Read the installed version on demand, so that `--help` stays fast."""
    return _version("mcpfactory")
