"""How many texts Twilio bills for one message: by the alphabet that its signs need (GSM 03.38, or UCS-2)."""

from __future__ import annotations

from typing import Final

__all__ = ["segments"]

_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_EXTENDED: Final = frozenset("\f^{}\\[~]|€")  # each takes the place of two


def segments(body: str) -> int:
    """Return the number: 160 places of GSM-7, or 70 units of UTF-16, fit one segment; 153 or 67 each of several."""
    signs = set(body)
    if signs <= _BASIC | _EXTENDED:
        length, alone, several = len(body) + sum(body.count(sign) for sign in signs & _EXTENDED), 160, 153
    else:
        length, alone, several = len(body.encode("utf-16-be", "surrogatepass")) // 2, 70, 67
    return 1 if length <= alone else -(-length // several)
