"""Sandboxes that limit a server's code during build, tests and checks, at one of several levels."""
