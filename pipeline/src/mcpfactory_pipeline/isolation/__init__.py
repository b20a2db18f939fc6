"""Sandboxes that limit a server's code while the pipeline builds, tests and checks it, at one of several levels."""
