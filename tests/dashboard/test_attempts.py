"""Wrong tokens count for the caller they come from, and for all only far above that."""

from __future__ import annotations

from mcpfactory_pipeline.dashboard.attempts import LoginAttempts, caller_key
from tests.rows import rows


def test_a_caller_has_ten_in_a_minute_and_the_others_are_let_in() -> None:
    now = 0.0
    attempts = LoginAttempts(lambda: now)
    for _ in range(9):
        attempts.count("192.0.2.1")
    assert attempts.refusal("192.0.2.1") == ""
    attempts.count("192.0.2.1")
    assert "your address" in attempts.refusal("192.0.2.1")
    assert attempts.refusal("192.0.2.2") == ""
    now = 61.0
    assert attempts.refusal("192.0.2.1") == ""


def test_who_guesses_from_very_many_addresses_is_slow_and_what_is_kept_has_an_end() -> None:
    now = 0.0
    attempts = LoginAttempts(lambda: now)
    looked_at = 0
    for number in range(5000):
        address = f"10.0.{number // 250}.{number % 250}"
        if not attempts.refusal(address):
            attempts.count(address)
            looked_at += 1
    assert looked_at == 300
    assert attempts.refusal("192.0.2.1") == "too many tokens were wrong"
    assert len(attempts._wrong) == 300
    now = 61.0
    assert attempts.refusal("192.0.2.1") == ""


@rows(
    "one, other, same",
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),  # a customer has all of a /64
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::1", True),
        ("", "no address", True),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_addresses_of_one_caller_count_as_one(one: str, other: str, same: bool) -> None:
    assert (caller_key(one) == caller_key(other)) is same
