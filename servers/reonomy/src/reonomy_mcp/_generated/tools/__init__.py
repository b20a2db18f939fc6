"""One module for each group of operations.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
