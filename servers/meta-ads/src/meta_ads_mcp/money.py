"""Amounts in the currency of an ad account, and in the minor units in which Meta takes budgets.

Meta's table of currencies gives each an offset, 100 or 1. It is Meta's own: forints and rupiahs have 1 there, dinars 100.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final

from mcpfactory_runtime import ToolError

__all__ = ["change", "digits", "minor_units", "stored", "written"]

_WHOLE: Final = frozenset({"CLP", "COP", "CRC", "HUF", "IDR", "ISK", "JPY", "KRW", "PYG", "TWD", "VND"})
"""Currencies with the offset 1 (Marketing API, currency codes); all others have 100."""


def digits(currency: str) -> int:
    """Return how many digits follow the point in amounts of a currency."""
    return 0 if currency in _WHOLE else 2


def written(minor: int, currency: str) -> str:
    """Return minor units as people write them: `1,250.00 EUR`, `5,000 JPY`."""
    places = digits(currency)
    return f"{Decimal(minor).scaleb(-places):,.{places}f} {currency}"


def stored(minor: Any, what: str) -> int:
    """Return an amount as Meta gives it, minor units in a text; 0 for none.

    Args:
        minor: the amount.
        what: its name.

    Raises:
        ToolError: it is no whole number.
    """
    if minor in (None, ""):
        return 0
    text = str(minor).removesuffix(".0")
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdecimal():
        raise ToolError(f"Meta gave {what} as {text[:20]!r}; expected minor units, a whole number.")
    return int(text)


def minor_units(amount: float | str, currency: str) -> int:
    """Return an amount of a currency in minor units.

    Raises:
        ToolError: it is not above zero, or has more digits than the currency.
    """
    try:
        scaled = Decimal(str(amount)).scaleb(digits(currency))
    except InvalidOperation:
        scaled = Decimal(0)
    if not scaled.is_finite() or scaled <= 0:
        raise ToolError(f"{amount} is no amount of money.\nhint: give a number above zero, in {currency}.")
    if scaled != scaled.to_integral_value():
        raise ToolError(
            f"{amount} {currency} has more digits than the currency has.\n"
            f"hint: amounts in {currency} have {digits(currency) or 'no'} digits after the point."
        )
    return int(scaled)


def change(before: float, after: float) -> str:
    """Return how much something changed: `+25.0 %`; `new` where there was nothing before."""
    if not before:
        return "new" if after else "0.0 %"
    return f"{(after - before) / before * 100:+.1f} %"
