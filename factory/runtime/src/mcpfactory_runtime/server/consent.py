"""Consent of a person to a costly or destructive action.

An answer is valid only for the sentence that the person read and for the values in `bound_to`. A rerun of the tool
cannot use the answer for another question.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Sequence
from typing import Final

from mcpfactory_runtime.server.inputs import Elicit, Elicited
from mcpfactory_runtime.server.request_state import CODE_LIFETIME
from mcpfactory_runtime.types import Json

_FIELD: Final = "go_ahead"
_FORM: Final[Json] = {
    "type": "object",
    "properties": {_FIELD: {"type": "boolean", "title": "Go ahead", "default": False}},
    "required": [_FIELD],
}
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})  # Unicode categories of invisible characters
_MINUTES: Final = int(CODE_LIFETIME // 60)


class Consent(Elicit):
    """A question that asks for a person's consent.

    Args:
        what: the action, as one sentence with names and amounts.
        bound_to: JSON values that the consent also covers, such as IDs that the sentence omits.
        otherwise: beginning of the message about missing consent, such as "Nothing was sent".
    """

    kind = "consent"

    def __init__(self, what: str, bound_to: Sequence[object], otherwise: str) -> None:
        text = json.dumps([what, *bound_to], sort_keys=True, separators=(",", ":"))
        self.digest = hashlib.sha256(text.encode()).hexdigest()
        self.key = f"consent-{self.digest[:32]}"
        self._what = "".join(map(_seen, what.strip()))
        self._otherwise = otherwise.rstrip(".")
        end = "" if self._what.endswith((".", "!", "?")) else "."
        super().__init__(f"{self._what}{end} Go ahead?", _FORM)

    def read(self, answer: Json) -> Elicited:
        """Return `accept` if the form contains JSON true, and `decline` for any other answer."""
        content = answer.get("content")
        agreed = answer.get("action") == "accept" and isinstance(content, dict) and content.get(_FIELD) is True
        return Elicited("accept" if agreed else "decline", None)

    def declined_message(self) -> str:
        """Return the tool's message after a refusal."""
        return f"{self._otherwise}: the person did not agree. ({self._what})"

    def failed(self, error: Exception) -> str:
        """Return the tool's message after an error response from the client."""
        return f"{self._otherwise}: the person could not be asked ({error}). ({self._what})"

    def refused(self, hint: str) -> str:
        """Return the tool's message if the client cannot ask its user and the tool takes no consent code."""
        more = hint or "use a client that can ask its user (elicitation by forms)"
        return f"{self._otherwise}: a person must agree to this, and this client cannot ask one. ({self._what})\nhint: {more}"

    def confirmation_code_message(self, code: str, given: str) -> str:
        """Return the tool's message with a new consent code, for a client that cannot ask its user."""
        wrong = "; the given confirm code is for something else, was used already, or is too old" if given else ""
        return (
            f"{self._otherwise}: a person must agree to this first, and this client cannot ask one{wrong}. ({self._what})\n"
            f'hint: show it to the person; when they agree, call again with the same arguments and confirm="{code}", '
            f"which is valid once, for {_MINUTES} minutes"
        )


def _seen(one: str) -> str:
    """Escape invisible characters and bidirectional control characters."""
    if one in "\n\t" or unicodedata.category(one) not in _UNSEEN:
        return one
    return one.encode("ascii", "backslashreplace").decode() if ord(one) > 127 else f"\\x{ord(one):02x}"
