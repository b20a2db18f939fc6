"""Animals that are healthy themselves, and served over HTTP in a way that is not."""

from __future__ import annotations

from tests.zoo.base import Animal

# Name → the rule that must catch it. What the cage does wrong has the name of the rule.
CHANGES = {
    "Reboundable": "http.origin",
    "Plain": "http.content-type",
    "Unaccepting": "http.accepted",
    "Getter": "http.get",
    "Gapped": "http.session-id",
    "Sessionless": "http.no-session",
    "Hospitable": "http.unknown-session",
    "Undying": "http.deleted-session",
    "Timetraveller": "http.version-header",
    "Batcher": "http.arrays",
    "Unreceipted": "legacy.batch-silence",
    "Versionless": "http.modern-version",
    "Methodless": "http.modern-method",
    "Misnamed": "http.modern-name",
    "Alright": "http.modern-status",
    "Sessional": "http.modern-session",
    "ModernGetter": "http.modern-get",
}


class Served(Animal):
    """Is looked at by its URL."""

    at_url = True


def served() -> dict[str, type[Animal]]:
    """The animals of the table."""
    return {
        name: type(
            name, (Served,), {"rule": rule, "amiss": frozenset({rule.partition(".")[2]}), "__doc__": f"Breaks {rule}."}
        )
        for name, rule in CHANGES.items()
    }
