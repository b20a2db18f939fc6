"""Calls of every tool, right and wrong, each with the request that it must make and the answer: the tests of a generated server."""
