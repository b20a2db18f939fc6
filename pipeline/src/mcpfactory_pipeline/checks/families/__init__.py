"""The rules of `validate`, one module for each family; a rule is a row of its module's table."""
