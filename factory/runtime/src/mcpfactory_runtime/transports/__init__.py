"""Bytes in, bytes out: stdio, HTTP, memory."""
