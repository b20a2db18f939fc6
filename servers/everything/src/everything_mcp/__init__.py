"""A server that uses every feature of the protocol."""

__version__ = "0.1.0"
