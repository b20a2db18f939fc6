"""Tests that mcpfactory made from the API document; rewritten whole."""
