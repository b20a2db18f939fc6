"""Adoption of existing servers: recognize, build, start, install and watch each kind."""
