"""Where an answer is unlike a documented one: each difference by its name, and none where only values differ."""

from __future__ import annotations

import re
from typing import Any

from mcpfactory_runtime.testing import differences
from tests.subtest_table import parametrize_subtests

DOCUMENTED: dict[str, Any] = {
    "sid": re.compile(r"SM[0-9a-f]{32}"),
    "status": {"queued", "sent"},
    "segments": "1",
    "price": "-0.00750",
    "sent": "Fri, 24 May 2019 17:44:50 +0000",
    "error": None,
    "media": 2,
    "score": 0.5,
    "valid": True,
    "note": "",
    "links": {"media": "/v1/media.json"},
    "rows": [{"day": "2019-05-24"}],
}
ANSWERED: dict[str, Any] = {
    "sid": "SM" + "0" * 32,
    "status": "sent",
    "segments": "12",
    "price": "3.5",
    "sent": "Sun, 22 Nov 2026 10:00:00 +0000",
    "error": {"any": 1},
    "media": 0,
    "score": 1,
    "valid": False,
    "note": "x",
    "links": {"media": "/x", "more": 1},
    "rows": [{"day": "2026-11-22"}, {"day": "2026-11-23", "more": 1}],
}


def test_other_values_of_the_same_shape_are_no_difference() -> None:
    assert differences(DOCUMENTED, ANSWERED) == []


@parametrize_subtests(
    "member, answered, said",
    [
        ("sid", "unknown", "sid: is a text: 'unknown'; documented is a text of a pattern"),
        ("sid", 7, "sid: is a whole number"),
        ("status", "gone", "status: is a text: 'gone'; documented is a value of an enumeration"),
        ("segments", 1, "segments: is a whole number: 1; documented is digits: '1'"),
        ("segments", "1.5", "segments: is a decimal number"),
        ("price", -0.0075, "price: is a number"),
        ("price", None, "price: is null"),
        ("sent", "2026-11-22T10:00:00Z", "sent: is a date and time that ends in Z"),
        ("media", True, "media: is true or false"),
        ("media", 0.5, "media: is a number"),
        ("score", True, "score: is true or false"),
        ("score", "0.5", "score: is a decimal number"),
        ("valid", 1, "valid: is a whole number"),
        ("note", None, "note: is null"),
        ("links", [], "links: is a list"),
        ("links", {"media": "https://x"}, "links.media: is a URL"),
        ("links", {}, "links.media: is missing; documented is a path"),
        ("rows", [], "rows: is an empty list; documented is one of an object"),
        ("rows", {}, "rows: is an object"),
        ("rows", [{"day": "2026-11-22"}, {}], "rows[1].day: is missing; documented is a date"),
    ],
)
def test_a_difference_is_told_by_its_name(member: str, answered: Any, said: str) -> None:
    found = differences(DOCUMENTED, {**ANSWERED, member: answered})
    assert len(found) == 1
    assert found[0].startswith(said)


def test_what_is_missing_is_told_and_so_is_another_kind_of_answer() -> None:
    without = {name: value for name, value in ANSWERED.items() if name != "error"}
    assert differences(DOCUMENTED, without) == ["error: is missing; documented is null"]
    assert differences(DOCUMENTED, [ANSWERED])[0].startswith("the answer: is a list")
    assert differences([1, "x"], [5, "a", 7]) == ["[2]: is a whole number: 7; documented is a text: 'x'"]
