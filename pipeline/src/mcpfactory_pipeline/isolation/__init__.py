"""Sandboxes that limit a server's code during build, tests and checks."""
