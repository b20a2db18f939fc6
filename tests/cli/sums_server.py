"""A server with one tool, as a module of tests and as a program."""

from __future__ import annotations

from mcpfactory_runtime import Server

CASES = [{"tool": "add", "arguments": {"a": 1, "b": 2}}]


def sums() -> Server:
    server = Server("sums", version="1.0.0")

    @server.tool(annotations={"readOnlyHint": True})
    def add(a: int, b: int) -> int:
        """Return the sum of two numbers.

        Args:
            a: First number.
            b: Second number.
        """
        return a + b

    return server


if __name__ == "__main__":
    sums().run()
