"""Set up workspaces, and remove or rename servers."""
