"""The animals: each is the healthy server broken in exactly one way, and names the rule that must catch it."""

from __future__ import annotations

from tests.zoo import (
    arrays,
    at_urls,
    behaviour,
    catalogue,
    changes,
    conduct,
    listening,
    packages,
    performance,
    persons,
    protocol,
    robustness,
    tempted,
)
from tests.zoo.base import Animal

_BASES = (
    Animal,
    at_urls.Served,
    changes.Changed,
    conduct.Talkative,
    catalogue.Reschemed,
    packages.Packaged,
    tempted.Reading,
)


def animals() -> dict[str, type[Animal]]:
    """Every animal by name, in the order of the files."""
    modules = (
        protocol,
        arrays,
        listening,
        changes,
        catalogue,
        behaviour,
        persons,
        conduct,
        packages,
        robustness,
        performance,
        tempted,
    )
    kinds = [kind for module in modules for kind in vars(module).values()]
    return (
        changes.answering()
        | at_urls.served()
        | {
            kind.__name__: kind
            for kind in kinds
            if isinstance(kind, type) and issubclass(kind, Animal) and kind not in _BASES
        }
    )
