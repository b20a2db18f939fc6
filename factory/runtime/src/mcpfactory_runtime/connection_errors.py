"""Why a connection failed, in the system's words: libraries wrap its error, and some of their errors have no words."""

from __future__ import annotations

import os
import socket
import ssl


def system_error(error: BaseException) -> OSError | None:
    """Return the error of the operating system, the resolver or TLS that caused an error, or None.

    If several addresses were tried, the first one's error is returned.
    """
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        if isinstance(inner, ssl.SSLError) or (isinstance(inner, OSError) and inner.errno):
            return inner
        inner = inner.__cause__ or inner.__context__
    return None


def why_unreachable(error: BaseException) -> str:
    """Return why a connection failed: the system's message, else the error's own, else its class name."""
    system = system_error(error)
    if isinstance(system, socket.gaierror):
        return "the name is unknown"
    if isinstance(system, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {system.verify_message}"
    if isinstance(system, ssl.SSLError):
        return "the TLS handshake failed"
    if system is not None and system.errno:
        return os.strerror(system.errno).lower()
    return str(error) or type(error).__name__
