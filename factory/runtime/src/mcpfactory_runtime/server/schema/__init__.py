"""From types and JSON Schema to validators: arguments are checked, and never changed in a way that the wire would show.

What a validator cannot express passes, because the API behind the server validates in the end; a schema of an unknown dialect is refused.
"""
