"""Starting a server from its sources: the environment that it runs in, the command, and what keeps it from starting."""
