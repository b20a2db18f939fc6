"""Adoption of existing servers."""
