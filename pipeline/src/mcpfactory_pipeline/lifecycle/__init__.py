"""Renaming and removing servers, also those whose folder was deleted by hand."""
