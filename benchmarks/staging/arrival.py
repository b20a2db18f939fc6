"""What became of one document: a record that is printed, kept and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Arrival", "Found", "Obstacle", "Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """A document that is to arrive.

    Attributes:
        name: of the document, and of its server.
        file: where it is.
        kind: what it is an example of.
        operations: how many it has, by the list; 0 when nobody counted.
        digest: the SHA-256 of what it says.
    """

    name: str
    file: Path
    kind: str
    operations: int
    digest: str


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason why a document does not arrive.

    Attributes:
        stage: that failed; `new` when no server was made.
        rule: of validate, or the test, or the code of a problem.
        text: what was found.
        place: `line N` of the document and the pointer there, when one operation or schema is the reason.
    """

    stage: str
    rule: str
    text: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What one rule of validate found in the server of a document.

    Attributes:
        rule, severity: of validate.
        count: how often.
        texts: the first of them.
        places: where the operations behind these are, "" when none is.
    """

    rule: str
    severity: int
    count: int
    texts: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Arrival:
    """What became of one document.

    Attributes:
        name, kind, operations: as in its `Source`.
        tools: of the server.
        seconds: of `new` and `pipeline run` together.
        stages: the seconds of each step.
        arrived: whether its server is in staging.
        hostile: why no server can be made of it, as the document itself says; "" when one can.
        obstacles: the reasons why not; the first of each rule.
        findings: what validate found of severity 2 and more, whether it arrived or not; the first of each rule.
    """

    name: str
    kind: str
    operations: int
    tools: int = 0
    seconds: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)
    arrived: bool = False
    hostile: str = ""
    obstacles: tuple[Obstacle, ...] = ()
    findings: tuple[Found, ...] = ()

    @property
    def expected(self) -> bool:
        """Whether it is as it should be: in staging, or hostile."""
        return self.arrived or bool(self.hostile)

    def as_json(self) -> dict[str, Any]:
        """The record for a program."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Arrival:
        """The record that `as_json` wrote."""
        told = tuple(Obstacle(**one) for one in record["obstacles"])
        found = tuple(
            Found(**{**one, "texts": tuple(one["texts"]), "places": tuple(one["places"])}) for one in record["findings"]
        )
        return cls(**{**record, "obstacles": told, "findings": found})
