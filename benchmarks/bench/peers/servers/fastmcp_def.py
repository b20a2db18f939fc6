"""One tool on FastMCP, a `def`."""

from fastmcp import FastMCP

server = FastMCP("bench")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run(show_banner=False, log_level="ERROR")
