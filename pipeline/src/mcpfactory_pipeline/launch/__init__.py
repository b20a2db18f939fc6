"""Start servers from their sources: environment, command, and explanation of failures."""
