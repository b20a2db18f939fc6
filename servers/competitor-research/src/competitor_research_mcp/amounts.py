"""Parsing of amounts and currencies as written on pages."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["AFTER", "AMOUNT", "BEFORE", "currency_of", "read_amount", "read_money"]

_SYMBOLS: Final = {
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "円": "JPY",
    "元": "CNY",
    "₹": "INR",
    "Rs": "INR",
    "₩": "KRW",
    "₽": "RUB",
    "₺": "TRY",
    "₪": "ILS",
    "₴": "UAH",
    "₫": "VND",
    "฿": "THB",
    "₱": "PHP",
    "₦": "NGN",
    "zł": "PLN",
    "Kč": "CZK",
    "Ft": "HUF",
    "lei": "RON",
    "kr": "kr",  # used in four countries
    "$": "$",
    "US$": "USD",
    "C$": "CAD",
    "CA$": "CAD",
    "A$": "AUD",
    "AU$": "AUD",
    "NZ$": "NZD",
    "HK$": "HKD",
    "S$": "SGD",
    "MX$": "MXN",
    "R$": "BRL",
}
_CODES: Final = "USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|INR|BRL|MXN|SGD|HKD|KRW|ZAR|TRY|ILS|CNY|AED"
_NAMES: Final = "|".join(
    rf"\b{re.escape(name)}\b\.?" if name.isalpha() and name.isascii() else re.escape(name)
    for name in sorted(_SYMBOLS, key=len, reverse=True)
)
BEFORE: Final = rf"(?:{_NAMES}|\b(?:{_CODES})\b)"
AFTER: Final = rf"{BEFORE}(?!\d)"  # not followed by another amount
AMOUNT: Final = (
    r"(?:0[.,]\d{3,6}(?!\d)"  # 0.0015
    r"|\d{1,3}(?:[.,\u00a0\u202f'’ ]\d{3})+(?:[.,]\d{1,2})?(?!\d)"  # 1.299,50
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d{1,2})?(?!\d)"  # 1,29,999: lakh and crore
    r"|\d{1,9}(?:[.,]\d{1,2})?(?!\d))"
)
_MONEY: Final = re.compile(rf"\s*(?P<before>{BEFORE})?\s*(?P<amount>{AMOUNT})(?:[.,][-–—]+)?\s*(?P<after>{BEFORE})?\s*")
_PLAIN: Final = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def currency_of(symbol: str) -> str:
    """Return the ISO 4217 code of a symbol, or the symbol if it is ambiguous."""
    name = symbol.rstrip(".")
    return _SYMBOLS.get(name, name)


def read_amount(text: str) -> float:
    """Return the number of a text that `AMOUNT` matches.

    The last separator is decimal if one or two digits follow it, if it is the only one of its kind among others, or if only a zero precedes it.
    """
    digits = re.sub(r"[\u00a0\u202f'’ ]", "", text)
    marks = re.findall(r"[.,]", digits)
    if not marks:
        return float(digits)
    whole, decimals = digits[: digits.rfind(marks[-1])], digits[digits.rfind(marks[-1]) + 1 :]
    alone = len(set(marks)) == 2 and marks.count(marks[-1]) == 1
    if len(decimals) != 3 or alone or whole == "0":
        return float(f"{re.sub('[.,]', '', whole)}.{decimals}")
    return float(re.sub("[.,]", "", digits))


_MOST: Final = 1e12  # no price is higher; `1e999` would become infinity


def read_money(text: str) -> tuple[float | None, str]:
    """Return amount and currency of a text that is only a price, as in structured data; (None, "") for any other text.

    A plain number is read as in programming languages: `1.299` is less than two.
    """
    if _PLAIN.fullmatch(text.strip()):
        number = float(text)
        return (number if 0 <= number < _MOST else None), ""
    found = _MONEY.fullmatch(text)
    if found is None:
        return None, ""
    return read_amount(found["amount"]), currency_of(found["before"] or found["after"] or "")
