"""Fields that several operations share: one type, default and description each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from mcpfactory_pipeline.base.text import LONGEST_REASON
from mcpfactory_pipeline.operations.operation import Omitted, Param

_KEY: Final = "a private key is a file of the person's own machine"
BY_PEOPLE: Final = "people are responsible for it, not agents"
_AT_ONCE: Final = "a person at a terminal reads and decides in one step"

Server = Annotated[
    str,
    Field(description="Server in this workspace", examples=["bookshop"]),
    Param(argument=True, metavar="NAME", names="servers"),
]
Servers = Annotated[
    tuple[str, ...],
    Field(description="Servers in this workspace [default: all]", examples=[["bookshop"]]),
    Param(argument=True, metavar="NAME", names="servers"),
]
Channel = Annotated[str, Field(description="Channel name"), Param(metavar="CHANNEL", names="channels")]
Candidate = Annotated[
    str,
    Field(description="Candidate ID prefix [default: candidate in the previous channel]"),
    Param(metavar="CANDIDATE"),
]
StageName = Annotated[
    str,
    Field(description="Approval stage, instead of a channel"),
    Param(metavar="STAGE", names="stages"),
]
Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=LONGEST_REASON),
    Field(description="Reason, recorded with the decision"),
    Param(flags=("--reason", "-m")),
]
SignWith = Annotated[
    Path | None,
    Field(description="SSH key to sign with, for channels and stages with `signed`"),
    Param(metavar="KEY", omit={"dashboard": _KEY, "mcp": _KEY}),
]
Precondition = Annotated[
    str,
    Field(description="`precondition` of the inbox or the status: refuses the decision if the facts changed since"),
    Param(omit={"cli": _AT_ONCE}),
]

RequiredReason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_REASON),
    Field(description="Reason, recorded with the decision"),
    Param(flags=("--reason", "-m")),
]
AGENTS_DECIDE_SINGLY: Final[Omitted] = {
    "dashboard": "the inbox selects several candidates",
    "mcp": "a person confirms each decision of an agent",
}
