"""The command line of mcpfactory: parse arguments, call one function, print the result."""

from importlib.metadata import version as _version

__all__ = ["version"]


def version() -> str:
    """Return the installed version. It is read on demand, so that `--help` stays fast."""
    return _version("mcpfactory")
