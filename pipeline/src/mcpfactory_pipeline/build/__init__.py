"""Build tools for stages: external programs, wheels, and candidate environments."""
