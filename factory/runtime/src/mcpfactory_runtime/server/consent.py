"""A person's yes to one thing that costs or destroys: the question, what counts as a yes, and the words of a refusal.

`Context.consent` asks. A yes belongs to the sentence that was read and to the values that it was bound to, so that a tool that is run
again with the answer, or that asks about something else next, finds no answer to another question.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from mcpfactory_runtime.server.inputs import Elicit, Elicited
from mcpfactory_runtime.server.sealing import CODE_LIFETIME

Json = dict[str, Any]

_FIELD: Final = "go_ahead"
_FORM: Final[Json] = {
    "type": "object",
    "properties": {_FIELD: {"type": "boolean", "title": "Go ahead", "default": False}},
    "required": [_FIELD],
}
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})  # categories of characters that nobody sees
_MINUTES: Final = int(CODE_LIFETIME // 60)


class Consent(Elicit):
    """The question whether a person agrees.

    Args:
        what: what will be done, as one sentence with names and amounts.
        bound_to: what else the yes belongs to, and the sentence need not say in full: ids, texts. Anything JSON.
        otherwise: what is so without a yes: "Nothing was sent".

    Attributes:
        digest: stands for the sentence and what it is bound to.
        key: the question's name, which is that of no other sentence or values.

    Raises:
        TypeError: a value that it is bound to is no JSON.
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
        """Return `accept` for a form that was sent with JSON's true; whatever else came is no yes, and no error either."""
        content = answer.get("content")
        agreed = answer.get("action") == "accept" and isinstance(content, dict) and content.get(_FIELD) is True
        return Elicited("accept" if agreed else "decline", None)

    def declined(self) -> str:
        """Return what a tool says after a no."""
        return f"{self._otherwise}: the person did not agree. ({self._what})"

    def failed(self, error: Exception) -> str:
        """Return what a tool says when the client had an error for an answer."""
        return f"{self._otherwise}: the person could not be asked ({error}). ({self._what})"

    def refused(self, hint: str) -> str:
        """Return what a tool says to a client that cannot ask, where there is no argument for a code."""
        more = hint or "use a client that can ask its user (elicitation by forms)"
        return f"{self._otherwise}: a person must agree to this, and this client cannot ask one. ({self._what})\nhint: {more}"

    def coded(self, code: str, given: str) -> str:
        """Return what a tool says to a client that cannot ask: the code that agrees, and why the one that was given does not."""
        wrong = "; the confirm that was given is not for this, was used already, or is too old" if given else ""
        return (
            f"{self._otherwise}: a person must agree to this first, and this client cannot ask one{wrong}. ({self._what})\n"
            f'hint: show it to the person; when they agree, call again with the same arguments and confirm="{code}", '
            f"which is good once, for {_MINUTES} minutes"
        )


def _seen(one: str) -> str:
    """Return a character, or its escape where nobody would see it or it would turn what stands around it."""
    if one in "\n\t" or unicodedata.category(one) not in _UNSEEN:
        return one
    return one.encode("ascii", "backslashreplace").decode() if ord(one) > 127 else f"\\x{ord(one):02x}"
