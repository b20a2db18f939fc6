"""Conversion between amounts in a currency and Meta's minor units.

Meta defines an offset per currency, 100 or 1. It differs from ISO 4217: forint and rupiah have 1, dinars 100.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final

from mcpfactory_runtime import ToolError

__all__ = ["change", "digits", "minor_units", "stored", "written"]

_WHOLE: Final = frozenset({"CLP", "COP", "CRC", "HUF", "IDR", "ISK", "JPY", "KRW", "PYG", "TWD", "VND"})
"""Currencies with the offset 1 (Marketing API, currency codes); all others have 100."""


def digits(currency: str) -> int:
    """Return the number of decimal places of a currency."""
    return 0 if currency in _WHOLE else 2


def written(minor: int, currency: str) -> str:
    """Format minor units: `1,250.00 EUR`, `5,000 JPY`."""
    places = digits(currency)
    return f"{Decimal(minor).scaleb(-places):,.{places}f} {currency}"


def stored(minor: Any, what: str) -> int:
    """Parse an amount in Meta's minor units, which is a string; 0 if it is missing.

    Args:
        minor: the amount.
        what: name of the field, for the error.

    Raises:
        ToolError: the amount is not an integer.
    """
    if minor in (None, ""):
        return 0
    text = str(minor).removesuffix(".0")
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdecimal():
        raise ToolError(f"Meta returned {what} as {text[:20]!r}; expected minor units, a whole number.")
    return int(text)


def minor_units(amount: float | str, currency: str) -> int:
    """Convert an amount to minor units.

    Raises:
        ToolError: the amount is not above zero, or has too many decimal places.
    """
    try:
        scaled = Decimal(str(amount)).scaleb(digits(currency))
    except InvalidOperation:
        scaled = Decimal(0)
    if not scaled.is_finite() or scaled <= 0:
        raise ToolError(f"{amount} is not an amount of money.\nhint: give a number above zero, in {currency}.")
    if scaled != scaled.to_integral_value():
        raise ToolError(
            f"{amount} {currency} has too many decimal places.\n"
            f"hint: amounts in {currency} have {digits(currency) or 'no'} decimal places."
        )
    return int(scaled)


def change(before: float, after: float) -> str:
    """Format a change in percent: `+25.0 %`, or `new` if `before` is 0."""
    if not before:
        return "new" if after else "0.0 %"
    return f"{(after - before) / before * 100:+.1f} %"
