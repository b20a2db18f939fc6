"""What a server calls itself, as clients will read it."""

from __future__ import annotations

__all__ = ["check_identity"]


def check_identity(name: str, version: str) -> tuple[str, str]:
    """Return what a server is called and its version, if clients will take them.

    Raises:
        TypeError: one is no text.
        ValueError: there is no name.
    """
    for what, text in (("name", name), ("version", version)):
        if not isinstance(text, str):
            raise TypeError(f"the {what} of a server is text, not {text!r}\nhint: Server('notes', version='1.0.0')")
    if not name.strip():
        raise ValueError("a server needs a name\nhint: Server('notes')")
    return name, version
