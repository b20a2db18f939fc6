"""Attacks on all surfaces except documents: attempt, expectation and result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.attacks import (
    api_responses,
    connections,
    elicitation,
    environment_leaks,
    hostile_texts,
    network_messages,
    oauth_client,
    paths_and_hosts,
    untrusted_servers,
)


@dataclass(frozen=True)
class Attempt:
    """`carry_out` tries the attack in its own folder, and returns the response or raises `HarmError`."""

    surface: str
    expected: str
    carry_out: Callable[[Path], str]


ATTEMPTS: Final[dict[str, Attempt]] = {
    f"{surface}: {name}": Attempt(surface, expected, carry_out)
    for surface, rows in (
        ("questions", elicitation.ROWS),
        ("surroundings", environment_leaks.ROWS),
        ("connections", connections.ROWS),
        ("answers of APIs", api_responses.ROWS),
        ("logins", oauth_client.ROWS),
        ("texts", hostile_texts.ROWS),
        ("documents of agents", paths_and_hosts.AGENTS),
        ("names", paths_and_hosts.NAMES),
        ("settings and results of jobs", paths_and_hosts.SETTINGS),
        ("templates", paths_and_hosts.TEMPLATES),
        ("web pages", network_messages.PAGES),
        ("sealed states", network_messages.STATES),
        ("strangers", untrusted_servers.ROWS),
    )
    for name, (expected, carry_out) in rows.items()
}
