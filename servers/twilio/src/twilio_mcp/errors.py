"""Meaning of Twilio's error codes, with advice (twilio.com/docs/api/errors)."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["describe", "explained"]

_CODES: Final[dict[int, tuple[str, str]]] = {
    20003: (
        "Twilio does not accept the credentials",
        "the operator must check TWILIO_USERNAME and TWILIO_PASSWORD",
    ),
    20429: ("too many requests at once", "wait, then make fewer"),
    21211: ("the number is not valid", "write it with + and the country code, and check it with look_up_number"),
    21408: (
        "messages to this country are not permitted",
        "permit the country in the console: Messaging, Geo permissions",
    ),
    21610: ("the person has unsubscribed with STOP", "do not write again; they can send START"),
    21614: ("the number cannot get texts", "look_up_number with line_type_intelligence returns the line type"),
    30001: ("the queue was full", "send it more slowly"),
    30002: ("the account is suspended", "check the console"),
    30003: ("the phone could not be reached: switched off, or abroad", "try it later"),
    30004: ("the phone or its carrier blocks the message", "ask the person"),
    30005: ("the number is not in use any more", "remove it from the list"),
    30006: ("the number is a landline, or its carrier takes no texts", "use make_call"),
    30007: ("the carrier filtered it as unwanted", "change the text, avoid short links, register the sender"),
    30008: ("the carrier gives no reason", "try it again, then ask Twilio's support"),
    30034: ("the sender is not registered for A2P 10DLC", "register brand and campaign in the console"),
    63016: ("WhatsApp permits free text only within 24 hours after the person has written", "use an approved template"),
}


_NO_CHECK: Final = (
    "there is nothing to check: the code has expired (after 10 minutes), was approved already, or was tried too often (5 times)",
    "send a new one with send_code",
)


def explained(code: int, said: str = "") -> tuple[str, str]:
    """Return reason and advice for an error code; `said` is Twilio's own message, for unknown codes."""
    unknown = (said or "Twilio gives no reason", f"see https://www.twilio.com/docs/api/errors/{code}")
    return _CODES.get(code, unknown)


def describe(error: dict[str, Any], path: str) -> str:
    """Return code, documentation URL and advice for an error response, or "".

    Args:
        error: JSON body of the response.
        path: path of the operation.
    """
    code, info = error.get("code"), error.get("more_info")
    if not isinstance(code, int):
        return ""
    known = _NO_CHECK if code == 20404 and path.endswith("/VerificationCheck") else _CODES.get(code)
    place = info if isinstance(info, str) and info else f"https://www.twilio.com/docs/errors/{code}"
    lines = [f"Twilio error {code}: {place[:200]}"]
    return "\n".join([*lines, *([f"hint: {known[0]}; {known[1]}"] if known else [])])
