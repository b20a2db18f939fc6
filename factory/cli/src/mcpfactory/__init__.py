"""The command line of mcpfactory: parse, call one function of the pipeline or of code generation, print."""

from importlib.metadata import version as _version

__all__ = ["version"]


def version() -> str:
    """Return the installed version, read when asked for so that `--help` stays light."""
    return _version("mcpfactory")
