"""Two tools on mcpfactory's runtime: one that needs next to nothing, one that keeps a core busy for a while."""

from mcpfactory_runtime import Server

server = Server("computing", version="1")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def count(a: int, b: int) -> int:
    """Add two numbers after counting to 20,000."""
    total = 0
    for number in range(20_000):
        total += number
    return a + b if total else 0


server.run()
