"""The rules of the audit, one module for each family of them: a function that looks, and its row."""
