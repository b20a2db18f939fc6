"""One tool on mcpfactory's runtime."""

from mcpfactory_runtime import Server

server = Server("bench", version="1")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run()
