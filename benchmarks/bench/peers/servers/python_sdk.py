"""One tool on the official Python SDK, as its documentation writes it."""

import sys

from mcp.server import MCPServer

server = MCPServer("bench")


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if "--http" in sys.argv:
    port = int(sys.argv[sys.argv.index("--port") + 1])
    # as it comes it answers by event streams; JSON is faster
    server.run("streamable-http", host="127.0.0.1", port=port, json_response="--as-it-comes" not in sys.argv)
else:
    server.run("stdio")
