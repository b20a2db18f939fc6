"""Number of billed segments of a message, by the alphabet that the message needs (GSM 03.38, or UCS-2)."""

from __future__ import annotations

from typing import Final

__all__ = ["segments"]

_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_EXTENDED: Final = frozenset("\f^{}\\[~]|€")  # each counts as two characters


def segments(body: str) -> int:
    """Return the number of segments. One has 160 GSM-7 characters or 70 UTF-16 units; each of several has 153 or 67."""
    signs = set(body)
    if signs <= _BASIC | _EXTENDED:
        length, alone, several = len(body) + sum(body.count(sign) for sign in signs & _EXTENDED), 160, 153
    else:
        length, alone, several = len(body.encode("utf-16-be", "surrogatepass")) // 2, 70, 67
    return 1 if length <= alone else -(-length // several)
