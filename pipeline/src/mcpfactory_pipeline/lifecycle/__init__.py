"""Servers come and go: a new name, the end of one, and what is left behind when a folder was deleted by hand."""
