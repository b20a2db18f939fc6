"""One tool on mcpfactory's runtime, a `def` that promises to be quick."""

from mcpfactory_runtime import Server

server = Server("bench", version="1")


@server.tool(inline=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run()
