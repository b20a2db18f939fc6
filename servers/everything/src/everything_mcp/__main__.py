"""`python -m everything_mcp`."""

from .server import main

main()
