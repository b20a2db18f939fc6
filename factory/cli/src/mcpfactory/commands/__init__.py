"""Commands, one module for each noun."""
