"""A small server on the official Python SDK: `validate` must report no findings. `--http PORT` serves it at a URL."""

from __future__ import annotations

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

server = MCPServer("official-zoo", version="1.0.0")


class Total(BaseModel):
    """A sum."""

    sum: float


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(
    a: Annotated[float, Field(description="One summand.", examples=[2])],
    b: Annotated[float, Field(description="The other summand.", examples=[3])],
) -> Total:
    """Return the sum of two numbers, exact for integers of any size."""
    return Total(sum=a + b)


@server.tool()
def moon_phase() -> str:
    """Tell whether the moon is waxing or waning tonight, as seen from the zoo."""
    return "waxing"


@server.resource("zoo://plan")
def plan() -> str:
    """Return the plan of the zoo."""
    return "Lions to the left."


if __name__ == "__main__":
    if "--http" in sys.argv:
        server.run("streamable-http", port=int(sys.argv[-1]))
    else:
        server.run()
