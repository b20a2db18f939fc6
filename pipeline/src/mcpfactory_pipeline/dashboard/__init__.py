"""Web dashboard with the status of every server of a workspace: live on loopback, or as a static, read-only site."""
