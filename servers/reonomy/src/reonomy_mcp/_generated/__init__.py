"""What mcpfactory made from the API document.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
