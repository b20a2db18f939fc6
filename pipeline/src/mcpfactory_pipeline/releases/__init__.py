"""Releases in a monorepo: each server has versions, a changelog and tags of its own; only what changed is released."""
