"""Releases in a monorepo. Each server has its own versions, changelog and tags, and only changed servers are released.

Tags record finished releases, and commit trailers record unfinished releases. The release commit contains the server's
tool list (`changes/released.json`).
"""
