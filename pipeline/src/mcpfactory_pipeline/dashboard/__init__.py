"""Web dashboard of a workspace: a live site on this machine, or a static read-only site."""
