"""One tool on FastMCP, as its documentation writes it."""

import sys

from fastmcp import FastMCP

server = FastMCP("bench")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if "--http" in sys.argv:
    server.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[sys.argv.index("--port") + 1]),
        json_response=True,
        show_banner=False,
        log_level="ERROR",
    )
else:
    server.run(show_banner=False, log_level="ERROR")
